import {
  type Baseline,
  baselineOf,
  printComparison,
  readBaseline,
  requireComparable,
} from '../compare/compare.ts'
import { latencyLoad } from '../compare/parts.ts'
import { saturateByAutocannon } from '../http/autocannon.ts'
import { header } from '../http/report.ts'
import { takeSample } from '../http/sample.ts'
import { logInEverywhere, openStand, type Stand } from '../http/stand.ts'
import type { Target } from '../http/target.ts'
import { workload } from '../http/workload.ts'
import { gitState } from '../measure/machine.ts'
import { packageVersion } from '../measure/package-version.ts'
import { Problem } from '../problem.ts'
import { type RunProgress, runProgress } from '../progress.ts'
import { prepareOutputs } from '../report/outputs.ts'
import {
  type Ending,
  earlyText,
  endingOf,
  type RoundsRun,
  runRounds,
  throwFailure,
} from '../rounds.ts'
import type { Variant } from '../stack/api.ts'
import { type Summary, summarize } from '../statistics.ts'
import { errorKinds, figure } from '../table.ts'
import { print } from '../terminal.ts'
import { arrivalTimes, requireBounded, secondsAt } from './arrivals.ts'
import { startGenerator } from './generator.ts'
import type { LatencyOptions } from './options.ts'
import { capacityLine, conclusions, lengthLine, rateText, tables } from './report.ts'
import type { Capacity, LatencyRate, LatencyResult, LatencySettings } from './result.ts'
import { type LatencyRun, takeLatencies } from './sample.ts'
import { summarizeLatencies } from './summary.ts'

/**
 * The whole of `npm run load -- latency`: finds or starts a stack, finds out what the variants can do,
 * runs the rounds, prints the tables, writes the files. What it started and logged in is gone when it
 * resolves or rejects. An interrupt, or a failure, leaves what the rounds gave that were complete by then.
 *
 * @param command the command line, for the record.
 * @returns whether something got worse than in the result that `--compare` names.
 * @throws Problem, ProgramError when it cannot be measured, or not to the end; the reason of `interrupt`
 *   when no round was complete.
 */
export async function runLatency(
  wanted: LatencyOptions,
  command: string,
  interrupt: AbortSignal,
): Promise<boolean> {
  const baseline =
    wanted.compare === undefined ? null : await readBaseline(wanted.compare, 'latency')
  if (baseline) requireComparable(baseline, { ...wanted, load: latencyLoad(wanted) })
  for (const rate of wanted.rate ?? []) requireBounded({ rate, seconds: wanted.duration })
  const outputs = await prepareOutputs(wanted)
  const date = new Date().toISOString()
  const known = wanted.rate ? null : ratesIn(baseline)
  const { run, ...measured } = await measure(wanted, known, interrupt)
  const { rates, options } = measured
  const result: LatencyResult = {
    format: 'onetrip-load-latency/1',
    date,
    command,
    git: await gitState(),
    ...measured,
    ...endingOf(run.early),
    summaries: summarizeLatencies(run.samples, rates, options.variants),
    samples: run.samples.map(({ sample }) => sample),
  }
  if (run.early) print(earlyText(run.early))
  print([tables(result), conclusions(result)].filter((part) => part !== '').join('\n\n'))
  await outputs.save(result)
  throwFailure(run.early)
  if (!baseline) return false
  print()
  return printComparison(baseline, baselineOf('This run', result), wanted.threshold)
}

/** The rates of a result that is compared with. */
function ratesIn(baseline: Baseline | null): LatencyRate[] | null {
  const [part] = baseline?.parts ?? []
  return part ? (part.document as LatencyResult).rates : null
}

type Measured = Omit<
  LatencyResult,
  'format' | 'date' | 'command' | 'git' | keyof Ending | 'summaries' | 'samples'
>

async function measure(
  wanted: LatencyOptions,
  known: LatencyRate[] | null,
  interrupt: AbortSignal,
): Promise<Measured & { run: RoundsRun<LatencyRun> }> {
  await using cleanup = new AsyncDisposableStack()
  const stand = await openStand(wanted, cleanup, interrupt)
  const { circumstances, target } = stand
  const options = settingsOf(wanted, stand)
  const generator = await packageVersion('undici')
  print(`\n${header({ ...circumstances, generator, options })}\n`)
  const tokens = await logInEverywhere(stand, options.sessions, cleanup)
  const progress = runProgress()
  cleanup.defer(() => progress.close())
  const owned = wanted.iOwnThisHost === true
  const runs: Runs = { stand, options, tokens, owned, interrupt, progress }
  const capacity = wanted.rate || known ? null : await capacityOf(runs)
  const rates = known ?? ratesOf(wanted, capacity)
  if (options.requests) print(`${lengthLine(rates, options)}\n`)
  return {
    ...circumstances,
    redis: { ...circumstances.redis, started: target.redis.build },
    stack: target.kind,
    generator,
    options,
    capacity,
    rates,
    run: await runRates(runs, rates),
  }
}

function settingsOf(wanted: LatencyOptions, { variants }: Stand): LatencySettings {
  const { connections, duration, requests, rounds, warmup, arrivals } = wanted
  const { workload, sessions, items, reads, seed } = wanted
  const load = { connections, duration, requests, rounds, warmup, arrivals }
  return { variants, ...load, workload, sessions, items, reads, seed }
}

interface Runs {
  stand: Stand
  options: LatencySettings
  tokens: ReadonlyMap<Variant, readonly string[]>
  owned: boolean
  interrupt: AbortSignal
  progress: RunProgress
}

type Api = Target['apis'][number]

const callsFor = ({ options, tokens }: Runs, { variant }: Api) =>
  workload({ ...options, tokens: tokens.get(variant) ?? [] })

const CAPACITY_ROUNDS = 2
const CAPACITY_S = 2

/** @throws Problem when a variant answers nothing; the reason of the interrupt. */
async function capacityOf(runs: Runs): Promise<Capacity> {
  const { stand, options, owned, interrupt, progress } = runs
  const { monitor, signal, target, variants } = stand
  print('What each variant can do at full speed:')
  const { samples, early } = await runRounds(
    { interrupt, signal, progress },
    {
      variants: target.apis,
      rounds: options.rounds === 1 ? 1 : CAPACITY_ROUNDS,
      label: ({ variant }) => variant,
      async measure(api, round) {
        const sample = await takeSample({
          ...api,
          round,
          monitor,
          calls: callsFor(runs, api),
          saturate: saturateByAutocannon,
          owned,
          seconds: Math.min(CAPACITY_S, options.duration),
          signal,
          onProgress(now) {
            progress.update(`${figure(now.requestsPerSecond)} requests/s`)
            stand.watch(api.url, now)
          },
        })
        requireAnswers(sample)
        return sample
      },
      describe: ({ requestsPerSecond }) => `${figure(requestsPerSecond)} requests/s`,
    },
  )
  if (early) throw early.reason
  const requestsPerSecond: Partial<Record<Variant, Summary>> = {}
  for (const variant of variants) {
    const own = samples.filter((sample) => sample.variant === variant)
    requestsPerSecond[variant] = summarize(own.map((sample) => sample.requestsPerSecond))
  }
  const median = (variant: Variant) => requestsPerSecond[variant]?.median ?? 0
  const slowest = variants.reduce((a, b) => (median(b) < median(a) ? b : a))
  const capacity = { generator: await packageVersion('autocannon'), requestsPerSecond, slowest }
  print(`\n${capacityLine(capacity)}\n`)
  return capacity
}

/** In growing order, each once: of little, several shares may be the same rate. */
function ratesOf(wanted: LatencyOptions, capacity: Capacity | null): LatencyRate[] {
  const all = capacity?.requestsPerSecond[capacity.slowest]?.median ?? 0
  const rates: LatencyRate[] = wanted.rate
    ? wanted.rate.map((requestsPerSecond) => ({ share: null, requestsPerSecond }))
    : wanted.shares.map((percent) => ({
        share: percent / 100,
        requestsPerSecond: Math.max(1, Math.round((all * percent) / 100)),
      }))
  const different = new Map(rates.map((rate) => [rate.requestsPerSecond, rate]))
  return [...different.values()].toSorted((a, b) => a.requestsPerSecond - b.requestsPerSecond)
}

async function runRates(runs: Runs, rates: readonly LatencyRate[]): Promise<RoundsRun<LatencyRun>> {
  const { stand, options, owned, interrupt, progress } = runs
  const { monitor, signal, target } = stand
  const { arrivals, seed } = options
  const generator = startGenerator(signal)
  const pairs = rates.flatMap((rate) => target.apis.map((api) => ({ rate, api })))
  const highest = rates.at(-1)
  const take = ({ rate, api }: (typeof pairs)[number], seconds: number, round: number) =>
    takeLatencies({
      ...api,
      round,
      rate: rate.requestsPerSecond,
      schedule: arrivalTimes({
        rate: rate.requestsPerSecond,
        seconds,
        arrivals,
        seed: seed + round, // the same for all variants of a round
      }),
      monitor,
      calls: callsFor(runs, api),
      generator,
      owned,
      signal,
      onProgress(now) {
        const line = now.line > 0 ? `  ${figure(now.line)} in line` : ''
        progress.update(
          `${figure(now.requestsPerSecond)} requests/s  p99 ${figure(now.p99)} ms${line}`,
        )
        stand.watch(api.url, now)
      },
    })
  try {
    for (const api of options.warmup > 0 ? target.apis : []) {
      if (!highest) break
      signal.throwIfAborted()
      progress.begin(`Warm-up  ${api.variant}`)
      const { sample } = await take({ rate: highest, api }, options.warmup, 0)
      requireAnswers(sample)
      progress.end(describe(sample))
    }
    return await runRounds(
      { interrupt, signal, progress },
      {
        variants: pairs,
        rounds: options.rounds,
        label: ({ rate, api }) => `${rateText(rate, null)}  ${api.variant}`,
        measure: (pair, round) =>
          take(pair, secondsAt(pair.rate.requestsPerSecond, options), round),
        describe: ({ sample }) => describe(sample),
      },
    )
  } finally {
    await generator.close()
  }
}

function requireAnswers({
  variant,
  ok,
  errors,
}: Pick<LatencyRun['sample'], 'variant' | 'ok' | 'errors'>) {
  if (ok > 0) return
  throw new Problem(
    `No request succeeded for ${variant} (${errorKinds(errors)}): there is nothing to compare.`,
  )
}

function describe({ latency, notSent, errors }: LatencyRun['sample']): string {
  const ms = (value: number | null) => figure(value ?? Number.NaN)
  const failed = errorKinds({ ...(notSent > 0 && { 'not sent': notSent }), ...errors })
  return `p50 ${ms(latency.p50)} ms  p99 ${ms(latency.p99)} ms  max ${ms(latency.max)} ms${failed === '0' ? '' : `  ${failed}`}`
}
