import { styleText } from 'node:util'
import { Problem } from '@onetrip/stack/problem.ts'
import { print, step } from '@onetrip/stack/terminal.ts'
import { isIsolated, isolateProcess } from './drivers/redis/generator/program.ts'
import { systemLimits } from './drivers/redis/limits.ts'
import { type RedisServer, requireBuild, startRedisServer } from './drivers/redis/server.ts'
import type { Context, Experiment, RoundOptions } from './experiment/experiment.ts'
import { errorKinds } from './experiment/figures.ts'
import { runProgress } from './experiment/progress.ts'
import { ELSEWHERE, FORMAT, type Result, type Sample } from './experiment/result.ts'
import { type EarlyEnd, endingOf, runRounds } from './experiment/rounds.ts'
import { Row, Rows } from './experiment/rows.ts'
import type { Case, Facts } from './experiment/shape.ts'
import { gitState, machine } from './measure/machine.ts'
import { readFamilyCpu, readMachineCpu, shareElsewhere } from './measure/machine-cpu.ts'
import { metricText } from './reporting/columns.ts'
import { factsOf } from './reporting/terminal.ts'

export interface RunPlan {
  readonly options: object & RoundOptions
  /** For the record. */
  readonly commandLine: string
  readonly interrupt: AbortSignal
  readonly comparedWith: Result | null
}

/** A result, and what kept it from having all rounds. */
export interface Finished {
  result: Result
  early: EarlyEnd | null
}

/**
 * Runs an experiment. What it started is stopped when this resolves or rejects. An
 * interrupt, or a failure, leaves the rounds that were complete.
 *
 * @throws Problem, ProgramError when it cannot be measured; the reason of `interrupt` when no round is
 *   complete.
 */
export async function runExperiment(experiment: Experiment, plan: RunPlan): Promise<Finished> {
  const { options, interrupt } = plan
  if (experiment.isolated && !isIsolated()) {
    for (const build of experiment.isolated(options)) await requireBuild(build, interrupt)
    await isolateProcess(interrupt)
  }
  const date = new Date().toISOString()
  await using undo = new AsyncDisposableStack()
  const { context, described } = contextOf(plan, undo)
  print(`${styleText('bold', experiment.title)}\n`)
  const run = await explained(context, async () => {
    const bench = await experiment.prepare(context, options)
    print(`${factsText({ machine: machine(), options: { ...options }, ...described })}\n`)
    return await runCases(experiment, bench, context, options)
  })
  const result: Result = {
    format: FORMAT,
    experiment: experiment.name,
    date,
    command: plan.commandLine,
    git: await gitState(),
    machine: machine(),
    elsewhere: meanElsewhere(run.samples),
    network: isIsolated() ? 'own namespace' : 'shared',
    limits: await systemLimits(),
    options: { ...options },
    ...described,
    ...endingOf(run.early),
    metrics: Object.fromEntries(experiment.metrics.map(({ name, label }) => [name, label])),
    samples: run.samples,
  }
  if (experiment.isolated && !isIsolated()) print(`${await warnOfSharedNetwork()}\n`)
  return { result, early: run.early }
}

/** The mean over all runs. */
function meanElsewhere(samples: readonly Sample[]): number | null {
  const shares = samples.flatMap(({ values }) => values[ELSEWHERE] ?? [])
  return shares.length > 0 ? shares.reduce((sum, share) => sum + share, 0) / shares.length : null
}

const factsText = (of: Parameters<typeof factsOf>[0]) => {
  const facts = factsOf(of)
  const width = Math.max(...facts.map(([label]) => label.length))
  return facts.map(([label, text]) => `${label.padEnd(width)}  ${text}`).join('\n')
}

function contextOf(
  { interrupt, comparedWith }: RunPlan,
  undo: AsyncDisposableStack,
): { context: Context; described: { load: Facts; software: Facts } } {
  const broken = new AbortController()
  const signal = AbortSignal.any([interrupt, broken.signal])
  const described = { load: {}, software: {} } as { load: Facts; software: Facts }
  const servers: RedisServer[] = []
  const describe: Context['describe'] = (kind, facts) => {
    described[kind] = { ...described[kind], ...facts }
  }
  const context: Context = {
    interrupt,
    signal,
    comparedWith,
    describe,
    step,
    fail: (reason) => broken.abort(reason),
    defer: (work) => undo.defer(async () => void (await work())),
    async startRedis(wanted) {
      const server = await step(`Starting Redis (${wanted.build})`, () =>
        startRedisServer(wanted, signal, (reason) => broken.abort(reason)),
      )
      undo.defer(() => server.stop())
      servers.push(server)
      const builds = servers.map(({ facts, build }) => `${facts.version} ${facts.build ?? build}`)
      describe('software', { Redis: [...new Set(builds)].join(', ') })
      return server
    },
  }
  return { context, described }
}

/** @throws what `work` throws, or what went away, which explains it better. */
async function explained<T>({ signal }: Context, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    signal.throwIfAborted()
    throw error
  }
}

async function runCases(
  experiment: Experiment,
  bench: unknown,
  context: Context,
  options: object & RoundOptions,
): Promise<{ samples: Sample[]; early: EarlyEnd | null }> {
  const cases = experiment.cases(bench, options)
  if (cases.length === 0) throw new Problem('There is nothing to measure.')
  const { comparedWith } = context
  if (comparedWith) {
    const before = Rows.of(experiment, comparedWith.samples)
    if (!cases.some((one) => before.find(one))) {
      throw new Problem('The result of --compare has none of these cases. Give the same options.')
    }
  }
  const progress = runProgress()
  const measure = async (one: Case, round: number): Promise<Sample> => {
    const update = (text: string) => progress.update(text)
    const elsewhere = await startReading()
    const measured = await experiment.measure(one, bench, { round, options, context, update })
    const { errors = {}, doubts = [], foreignCpuSeconds = 0, ...rest } = measured
    const values = { [ELSEWHERE]: await elsewhere(foreignCpuSeconds), ...measured.values }
    return {
      ...{ case: one, round, ...rest, values },
      ...(Object.keys(errors).length > 0 && { errors }),
      ...(doubts.length > 0 && { doubts }),
    }
  }
  const { interrupt, signal } = context
  const warmUps = experiment.warmUp?.(cases, options) ?? []
  try {
    return await runRounds(
      { interrupt, signal, progress },
      {
        variants: cases,
        rounds: options.rounds,
        label: labelsOf(experiment, cases),
        warmUps,
        warmUp: (one) => measure(one, 0),
        measure,
        describe: (sample) => describe(experiment, sample),
      },
    )
  } finally {
    progress.close()
  }
}

/** A case in a few words: what sets it apart from the others, in columns. */
function labelsOf(experiment: Experiment, cases: readonly Case[]): (one: Case) => string {
  const rows = new Rows(
    experiment,
    cases.map((one) => new Row(experiment, [{ case: one, round: 0, values: {} }])),
  )
  const columns = rows.varying.map((name) => {
    const texts = rows.all.map((row) => row.text(name))
    const width = Math.max(...texts.map(({ length }) => length))
    return texts.map((text) => text.padEnd(width))
  })
  return (one) => columns.map((texts) => texts[cases.indexOf(one)]).join('  ')
}

function describe(experiment: Experiment, sample: Sample): string {
  const row = new Row(experiment, [sample])
  const figures = experiment.progress.flatMap((name) => {
    const value = row.median(name)
    const metric = row.metric(name)
    return value === null ? [] : [`${metric.label} ${metricText(metric, value)}`]
  })
  const kinds = errorKinds(sample.errors ?? {})
  return [...figures, ...(kinds === '0' ? [] : [`errors ${kinds}`])].join('  ')
}

const MIN_WATCHED_MS = 200

/** Begins to watch the machine; the result gives the share of CPU time that went elsewhere since. */
async function startReading(): Promise<(foreignSeconds: number) => Promise<number | null>> {
  const startedAt = performance.now()
  const [before, own] = [await readMachineCpu(), await readFamilyCpu(process.pid)]
  return async (foreignSeconds) => {
    // The system counts in steps of 10 ms.
    if (performance.now() - startedAt < MIN_WATCHED_MS) return null
    const now = (await readFamilyCpu(process.pid)) ?? 0
    return shareElsewhere(before, await readMachineCpu(), now - (own ?? 0) + foreignSeconds)
  }
}

/** What distorts load over TCP where there is no network namespace of one's own. */
async function warnOfSharedNetwork(): Promise<string> {
  const { trackedConnections } = await systemLimits()
  const tracked = trackedConnections
    ? `Connection tracking is on (${trackedConnections} entries; a container engine or a firewall): it makes each short connection over TCP dearer, and when it is full, SYNs are dropped.`
    : 'Closed connections (TIME_WAIT) of earlier runs may be in the way.'
  return `Note: measured in the network of this machine, since no network namespace is available. ${tracked}`
}
