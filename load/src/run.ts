import { styleText } from 'node:util'
import {
  readFamilyCpu,
  readMachineCpu,
  shareElsewhere,
} from '@onetrip/stack/measure/machine-cpu.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { print, step } from '@onetrip/stack/terminal.ts'
import { isIsolated, isolateProcess } from './drivers/redis/generator/program.ts'
import { type RedisServer, requireBuild, startRedisServer } from './drivers/redis/server.ts'
import type { Context, Experiment, RoundOptions } from './experiments/experiment.ts'
import { gitState, machine } from './measure/machine.ts'
import { metricText } from './reporting/columns.ts'
import { factsOf } from './reporting/part.ts'
import { inWords } from './reporting/terminal.ts'
import { errorKinds } from './rounds/figures.ts'
import { ELSEWHERE, FORMAT, IO_THREADS, type Result, type Sample } from './rounds/result.ts'
import { runRounds } from './rounds/rounds.ts'
import { Row, Rows } from './rounds/rows.ts'
import { type Facts, metricOf } from './rounds/shape.ts'

export interface RunPlan {
  readonly options: object & RoundOptions
  readonly commandLine: string
  readonly interrupt: AbortSignal
}

/**
 * Runs an experiment and stops all programs that it started.
 *
 * @returns the result with all complete rounds; `error` is what ended the run early, else null.
 * @throws Problem or ProgramError when no round is complete; the reason of `interrupt` after an interrupt.
 */
export async function runExperiment(
  experiment: Experiment,
  plan: RunPlan,
): Promise<{ result: Result; error: unknown }> {
  const { options, interrupt } = plan
  if (experiment.isolated && !isIsolated()) {
    for (const build of experiment.isolated(options)) await requireBuild(build, interrupt)
    await isolateProcess(interrupt)
  }
  const about = {
    format: FORMAT,
    experiment: experiment.name,
    date: new Date().toISOString(),
    command: plan.commandLine,
    git: await gitState(),
    machine: machine(),
    options: { ...options },
  } as const
  await using undo = new AsyncDisposableStack()
  const { context, described } = contextOf(plan, undo)
  print(`${styleText('bold', experiment.title)}\n`)
  const bench = await experiment.prepare(context, options).catch((error: unknown) => {
    context.signal.throwIfAborted() // prefer the reason of the abort to the error that it caused
    throw error
  })
  const facts = factsOf({ ...about, ...described })
  const width = Math.max(...facts.map(([label]) => label.length))
  for (const [label, text] of facts) {
    const lines = inWords(text, (process.stdout.columns ?? Number.NaN) - width - 2)
    print(`${label.padEnd(width)}  ${lines.join(`\n${' '.repeat(width + 2)}`)}`)
  }
  print()
  const { samples, error } = await runCases(experiment, bench, context, plan)
  const measured = new Set(samples.flatMap(({ values }) => Object.keys(values)))
  const labels = experiment.metrics.flatMap(({ name, label }) =>
    measured.has(name) ? [[name, label]] : [],
  )
  const shares = samples.flatMap(({ values }) => values[ELSEWHERE] ?? [])
  const result: Result = {
    ...about,
    ...described,
    elsewhere: shares.length > 0 ? shares.reduce((sum, one) => sum + one, 0) / shares.length : null,
    network: isIsolated() ? 'own namespace' : 'shared',
    interrupted: error !== null && interrupt.aborted,
    ...(error !== null && !interrupt.aborted && { failure: messageOf(error) }),
    metrics: Object.fromEntries(labels),
    samples,
  }
  if (experiment.isolated && !isIsolated()) print(`${SHARED_NETWORK}\n`)
  return { result, error }
}

function contextOf({ interrupt }: RunPlan, undo: AsyncDisposableStack) {
  const broken = new AbortController()
  const signal = AbortSignal.any([interrupt, broken.signal])
  const fail = (reason: Error) => broken.abort(reason)
  const described: { load: Facts; software: Facts } = { load: {}, software: {} }
  const servers: RedisServer[] = []
  const context: Context = {
    signal,
    step,
    fail,
    describe(kind, facts) {
      described[kind] = { ...described[kind], ...facts }
    },
    defer: (work) => undo.defer(async () => void (await work())),
    async startRedis(wanted) {
      const server = await step(`Starting Redis (${wanted.build})`, () =>
        startRedisServer(wanted, signal, fail),
      )
      undo.defer(() => server.stop())
      servers.push(server)
      const builds = servers.map(({ facts, build }) => `${facts.version} ${facts.build ?? build}`)
      context.describe('software', { Redis: [...new Set(builds)].join(', ') })
      const threads = new Set(servers.flatMap(({ facts: { ioThreads } }) => ioThreads ?? []))
      const [first = null] = threads
      context.describe('load', { [IO_THREADS]: threads.size > 1 ? [...threads].join(', ') : first })
      return server
    },
  }
  return { context, described }
}

async function runCases(
  experiment: Experiment,
  bench: unknown,
  context: Context,
  { options }: RunPlan,
) {
  const cases = experiment.cases(bench, options)
  if (cases.length === 0)
    throw new Problem('These options select no case: there is nothing to measure.')
  const samples = cases.map((one) => ({ case: one, round: 0, values: {} }))
  const planned = Rows.of(experiment, samples)
  const names = planned.all.map((row) => planned.nameOf(row))
  const width = Math.max(...names.map(({ length }) => length))
  return await runRounds({
    cases,
    rounds: options.rounds,
    warmUps: experiment.warmUp?.(cases, options) ?? [],
    signal: context.signal,
    label: (one) => (names[cases.indexOf(one)] ?? '').padEnd(width),
    async measure(one, round, note): Promise<Sample> {
      const elsewhere = await watchMachine()
      const measured = await experiment.measure(one, bench, { round, options, context, note })
      const { errors = {}, doubts = [], foreignCpuSeconds = 0, ...rest } = measured
      return {
        case: one,
        round,
        ...rest,
        values: { [ELSEWHERE]: await elsewhere(foreignCpuSeconds), ...rest.values },
        ...(Object.keys(errors).length > 0 && { errors }),
        ...(doubts.length > 0 && { doubts }),
      }
    },
    describe: (sample) => describe(experiment, sample),
  })
}

function describe(experiment: Experiment, sample: Sample): string {
  const row = new Row(experiment, [sample])
  const figures = experiment.progress
    .map((name) => metricOf(experiment, name))
    .filter(({ name }) => row.values(name).length > 0)
    .map((metric) => `${metric.label} ${metricText(metric, row.median(metric.name))}`)
  const failures = sample.errors ? [`errors ${errorKinds(sample.errors)}`] : []
  return [...figures, ...failures].join('  ')
}

/** The kernel counts CPU time in steps of 10 ms, so shares of shorter runs would be noise. */
const MIN_WATCHED_MS = 200

/** Returns a function that computes the share of CPU time used by other programs since this call. */
async function watchMachine(): Promise<(foreignSeconds: number) => Promise<number | null>> {
  const startedAt = performance.now()
  const [before, own] = [await readMachineCpu(), await readFamilyCpu(process.pid)]
  return async (foreignSeconds) => {
    if (performance.now() - startedAt < MIN_WATCHED_MS) return null
    const now = (await readFamilyCpu(process.pid)) ?? 0
    return shareElsewhere(before, await readMachineCpu(), now - (own ?? 0) + foreignSeconds)
  }
}

const SHARED_NETWORK =
  'Note: this run shares the network namespace of the system, because it cannot create its own. Connection tracking (a firewall, a container engine) and closed connections (TIME_WAIT) of other programs may distort the figures.'
