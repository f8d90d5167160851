import {
  latencyAt,
  type Percentile,
  percentileNames,
  percentText,
  shareOf,
  together,
} from '@onetrip/stack/measure/latencies.ts'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { Option } from 'commander'
import { apiOf, openBench } from '../../drivers/http/bench.ts'
import { FAILED, pacedDoubts, runPaced } from '../../drivers/http/paced.ts'
import { baselineVariant, saturationMetrics } from '../../drivers/http/saturation.ts'
import {
  addTarget,
  addWorkload,
  type WorkloadFlags,
  withWorkload,
} from '../../drivers/http/shared-options.ts'
import type { TargetOptions } from '../../drivers/http/target.ts'
import {
  arrivalTimes,
  MAX_SECONDS,
  requireBounded,
  secondsAt,
} from '../../drivers/pacer/arrivals.ts'
import { startGenerator } from '../../drivers/pacer/pacer.ts'
import { numbers, numbersOption } from '../../drivers/redis/options.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { errorKinds } from '../../experiment/figures.ts'
import { asLatency, asRate, type Measured } from '../../experiment/shape.ts'
import { packageVersion } from '../../measure/machine.ts'
import { givenRates, type Rate, sharesOfCapacity } from './rates.ts'
import { sectionsOf } from './report.ts'
import {
  FIRST_RATE,
  HIGHEST_RATE,
  imprecise,
  limitText,
  requireLimit,
  type SearchBench,
  searchRate,
} from './search.ts'

interface LatencyOptions extends WorkloadFlags, TargetOptions {
  /** In requests per second. Replaces `shares`. */
  rate?: number[]
  /** Percent of the slowest variant's capacity. */
  shares: number[]
  /** Such as `p99<10`, in milliseconds. Replaces `shares`. */
  limit?: string
  /** The minimum for each variant at each rate, over all rounds; 0 for runs of equal length. */
  requests: number
}

type Bench = SearchBench & { rates: readonly Rate[] }

const costs = ['generatorBusy', 'apiCpuMicros', 'redisCpuMicros']

/** Compares the latency of the variants of the API at the same fixed rates. */
export const latency: Experiment<LatencyOptions, Bench> = {
  name: 'latency',
  title: 'Latency at a fixed rate',
  summary: 'latency of the variants at fixed rates, or the highest rate within a limit',
  about: `
An open loop: requests are due at a fixed rate, independent of the speed of the API, like the visitors of a site.
Latency counts from the scheduled time, so a stall counts for every request scheduled during it. At full
speed (npm run load -- http), a stall also stops the requests and hardly shows.

First, each variant runs at full speed. The rates are shares of the capacity of the slowest variant, and the same
for all variants. --rate sets them instead. A request that fails, or still
waits for a connection one second after the end, counts as slower than all others. A percentile is shown if at
least ten requests are beyond it: p99.99 needs --requests 100000. Details: docs/method.md.

With --limit, the rates are not given: a search finds the highest rate at which a percentile stays below a limit.
It doubles or halves the rate until one holds and one does not, then tries rates between them, to a precision of
5 %. A rate is rejected after two runs above the limit. A run in which a request failed or was not sent is above
the limit. A run takes --duration, or up to 20 s if ten requests beyond the percentile need more time.

For the measured stack, the workloads and the environment variables, see npm run load -- http --help.

Examples:
  npm run load -- latency --variants naive,batch,connect-redis --shares 50,90
  npm run load -- latency --limit 'p99<10'
  npm run load -- latency --rate 1000,5000 --variants pipeline,batch
  REDIS_URL=redis://127.0.0.1:6379 npm run load -- latency --url http://127.0.0.1:3000 --rate 500`,
  rounds: 3,
  duration: 3,
  quick: { rounds: 1, duration: 2, warmup: 0.5 },
  full: { rounds: 5, duration: 3, warmup: 2, requests: 100_000 },
  configure(command) {
    const shares = 'rates, in percent of the capacity of the slowest variant'
    command
      .addOption(numbersOption('--shares <list>', shares, [1, 1_000], [25, 50, 75, 90]))
      .addOption(
        new Option('--rate <list>', 'rates in requests/s, instead of --shares')
          .argParser(numbers(1, 1_000_000))
          .conflicts('shares'),
      )
      .addOption(
        new Option('--limit <condition>', 'search for the highest rate, such as p99<10 (ms)')
          .argParser(requireLimit)
          .conflicts(['shares', 'rate']),
      )
      .option(
        '--requests <n>',
        `minimum requests of each variant at each rate, over all rounds: extends runs beyond --duration if ${MAX_SECONDS} s are enough`,
        wholeNumber(0, 10_000_000),
        0,
      )
    addWorkload(command, { variants: ['naive', 'pipeline', 'batch'], warmup: 1 })
    command.option('--connections <n>', 'concurrent HTTP connections', wholeNumber(1, 10_000), 64)
    addTarget(command)
  },
  complete: withWorkload,

  factors: [{ name: 'at', label: 'rate' }, { name: 'variant' }],
  subject: 'variant',
  metrics: [
    { name: 'rate', label: 'due requests/s' },
    { name: 'due', label: 'requests due' },
    ...percentileNames.map((name) => ({
      name,
      label: `${percentText(name)} ms`,
      overall: (samples: readonly Measured[]) => pooledAt(samples, name),
      ...(['p50', 'p99'].includes(name) && asLatency),
    })),
    { name: 'max', label: 'longest ms', overall: longest },
    { name: 'late', label: 'sent late p99 ms' },
    { name: HIGHEST_RATE, label: 'highest requests/s', ...asRate },
    { name: 'latency', label: 'ms at that rate' },
    { name: 'runs', label: 'runs', format: 'whole' },
    { name: 'generatorBusy', label: 'generator busy', format: 'percent' },
    ...saturationMetrics.filter(({ name }) => /^(api|redis)Cpu/.test(name)),
  ],
  progress: ['p50', 'p99', 'max', HIGHEST_RATE, 'latency'],
  doubts: { ...pacedDoubts, imprecise },
  baseline: baselineVariant,

  async prepare(context, options) {
    const { rate: given, shares, limit } = options
    for (const rate of given ?? []) requireBounded(rate, secondsAt(rate, options))
    context.describe('software', { Generator: packageVersion('undici') })
    const bench = await openBench(context, options)
    const rates =
      limit === undefined
        ? given
          ? givenRates(given)
          : await sharesOfCapacity(bench, context, shares, options.duration)
        : [{ at: limitText(limit), rate: FIRST_RATE }]
    const generator = startGenerator(context.signal)
    context.defer(() => generator.close())
    return { ...bench, rates, generator, starts: new Map() }
  },
  cases: ({ rates, apis }) =>
    rates.flatMap(({ at }) => apis.map(({ variant }) => ({ at, variant }))),
  warmUp: (cases, { warmup }) =>
    warmup > 0 ? cases.filter(({ at }) => at === cases.at(-1)?.at) : [],

  async measure({ at, variant }, bench, { round, options, context: { signal }, note }) {
    const api = apiOf(bench, { variant })
    const { limit } = options
    if (limit !== undefined && round > 0) {
      return await searchRate(bench, api, { limit, duration: options.duration, signal, note })
    }
    const rate = bench.rates.find((one) => one.at === at)?.rate ?? Number.NaN
    const seconds = round === 0 ? options.warmup : secondsAt(rate, options)
    const schedule = arrivalTimes(rate, seconds)
    const run = await runPaced(bench, api, { schedule, signal })
    const { due, ok, errors, late, max, cost } = run
    if (round === 0 && ok === 0) {
      throw new Problem(`All requests to ${variant} failed in the warm-up (${errorKinds(errors)}).`)
    }
    const percentiles = percentileNames.map((name) => {
      const value = run.percentile(name)
      return [name, value === FAILED ? null : value] as const
    })
    return {
      values: {
        rate,
        due,
        ...Object.fromEntries(percentiles),
        late,
        max,
        ...Object.fromEntries(costs.map((name) => [name, cost.values[name] ?? null])),
      },
      foreignCpuSeconds: cost.foreignCpuSeconds,
      errors,
      doubts: run.doubts,
      histograms: { latency: run.latencies },
    }
  },

  sections: sectionsOf,
}

/** The latencies of 2xx answers in all rounds. */
const pooled = (samples: readonly Measured[]) =>
  together(samples.flatMap(({ histograms }) => histograms?.latency ?? []))

function pooledAt(samples: readonly Measured[], name: Percentile): number | null {
  const due = samples.reduce((sum, { values }) => sum + (values.due ?? 0), 0)
  return latencyAt(pooled(samples), shareOf(name), due)
}

function longest(samples: readonly Measured[]): number | null {
  const values = samples.flatMap(({ values }) => values.max ?? [])
  return values.length > 0 ? Math.max(...values) : null
}
