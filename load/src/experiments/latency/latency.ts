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
import { apiFactors, type HttpBench, openBench, warmUpOf } from '../../drivers/http/bench.ts'
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
import { type PacedGenerator, startGenerator } from '../../drivers/pacer/pacer.ts'
import { numbers } from '../../drivers/redis/options.ts'
import { packageVersion } from '../../measure/machine.ts'
import { errorKinds } from '../../rounds/figures.ts'
import { asLatency, asRate, type Case, type Measured } from '../../rounds/shape.ts'
import type { Experiment } from '../experiment.ts'
import { capacitiesOf, ofOwnCapacity, perSecond } from './rates.ts'
import { sectionsOf } from './report.ts'
import {
  FIRST_RATE,
  HIGHEST_RATE,
  imprecise,
  limitText,
  requireLimit,
  searchRate,
} from './search.ts'

interface LatencyOptions extends WorkloadFlags, TargetOptions {
  /** In requests per second. */
  rate?: number[]
  /** In percent of the capacity of each variant. */
  shares?: number[]
  /** Such as `p99<10`, in milliseconds. */
  limit?: string
  /** The minimum for each variant at each rate, over all rounds; 0 for runs of equal length. */
  requests: number
}

interface Bench extends HttpBench {
  generator: PacedGenerator
  /** By the value of the factor `at`. */
  rates: Map<string, (one: Case) => number>
  /** The highest rates of the previous round, by case. */
  found: Map<string, number>
}

const costs = [
  'generatorBusy',
  'apiCpuMicros',
  'redisMainCpuMicros',
  'redisCpuMicros',
  'connections',
]

/** Compares the latency of the variants of the API at the same fixed rates. */
export const latency: Experiment<LatencyOptions, Bench> = {
  name: 'latency',
  title: 'Latency at a fixed rate',
  summary: 'latency of the variants at fixed rates, or the highest rate within a limit',
  about: `
An open loop: requests are due at a fixed rate, independent of the speed of the API, like the visitors of a site.
Latency counts from the scheduled time, so a stall counts for every request scheduled during it.

--rate sets rates for all variants, --shares rates in percent of what each variant can: first, each runs at full speed.
A request that fails, or still waits for a connection one second after the end, counts as slower than all others. A
percentile is shown if at least ten requests are beyond it: p99.99 needs --requests 100000.

With --limit, a search finds the highest rate at which a percentile stays below a limit, to a precision of 5 %. A rate
is rejected after two runs above the limit, or with failures. A run takes --duration, or up to 20 s if ten requests
beyond the percentile need more time.

Examples:
  npm run load -- latency --limit 'p99<10'
  npm run load -- latency --rate 500,2000 --shares 50,90 --limit 'p99<10' --processes warm
  npm run load -- latency --rate 1000,5000 --variants pipeline,batch
  REDIS_URL=redis://127.0.0.1:6379 npm run load -- latency --url http://127.0.0.1:3000 --rate 500`,
  rounds: 3,
  duration: 3,
  quick: { rounds: 1, duration: 2, warmup: 0.5 },
  full: { rounds: 5, duration: 3, warmup: 2, requests: 100_000 },
  configure(command) {
    const usual = '(default: --rate 500,2000,10000 --shares 50,90)'
    command
      .addOption(
        new Option('--rate <list>', `rates in requests/s ${usual}`).argParser(
          numbers(1, 1_000_000),
        ),
      )
      .addOption(
        new Option('--shares <list>', 'rates in percent of the capacity of each variant').argParser(
          numbers(1, 1_000),
        ),
      )
      .addOption(
        new Option('--limit <condition>', 'find the highest rate, such as p99<10 (ms)').argParser(
          requireLimit,
        ),
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
  complete(options) {
    const { rate, shares, limit } = options
    const usual = rate || shares || limit ? {} : { rate: [500, 2_000, 10_000], shares: [50, 90] }
    return withWorkload({ ...usual, ...options })
  },

  factors: [{ name: 'at', label: 'rate' }, ...apiFactors],
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
    ...saturationMetrics.filter(({ name }) => costs.includes(name)),
  ],
  progress: ['p50', 'p99', 'max', HIGHEST_RATE, 'latency'],
  doubts: { ...pacedDoubts, imprecise },
  baseline: baselineVariant,

  async prepare(context, options) {
    const { rate = [], shares = [], limit, duration } = options
    for (const one of rate) requireBounded(one, secondsAt(one, options))
    context.describe('software', { Generator: packageVersion('undici') })
    const bench = await openBench(context, options)
    const shareOfCapacity = shares.length > 0 && (await capacitiesOf(bench, context, duration))
    const found = new Map<string, number>()
    const rates: Bench['rates'] = new Map(
      rate.toSorted((a, b) => a - b).map((one) => [perSecond(one), () => one]),
    )
    if (shareOfCapacity) {
      for (const share of shares) {
        rates.set(ofOwnCapacity(share), (one) => shareOfCapacity(share, one))
      }
    }
    if (limit !== undefined) {
      rates.set(limitText(limit), (one) => found.get(JSON.stringify(one)) ?? FIRST_RATE)
    }
    const generator = startGenerator(context.signal)
    context.defer(() => generator.close())
    return { ...bench, rates, generator, found }
  },
  cases: ({ rates, cases }) =>
    [...rates.keys()].flatMap((at) => cases.map((one) => ({ at, ...one }))),
  warmUp: (cases, options) => warmUpOf(cases, options).filter(({ at }) => at === cases[0]?.at),

  measure: (one, bench, run) =>
    bench.use(one, async (api): Promise<Measured> => {
      const { round, options, note } = run
      const { signal } = run.context
      const { generator, rates, found } = bench
      const rate = rates.get(String(one.at))?.(one) ?? Number.NaN
      const { limit, duration } = options
      if (limit !== undefined && one.at === limitText(limit) && round > 0) {
        const searched = await searchRate(generator, api, {
          start: rate,
          limit,
          duration,
          signal,
          note,
        })
        const highest = searched.values[HIGHEST_RATE]
        if (highest) found.set(JSON.stringify(one), highest)
        return searched
      }
      const seconds = round === 0 ? options.warmup : secondsAt(rate, options)
      const paced = await runPaced(generator, api, {
        schedule: arrivalTimes(rate, seconds),
        signal,
      })
      if (round === 0 && paced.ok === 0) {
        const kinds = errorKinds(paced.errors)
        throw new Problem(`All requests to ${one.variant} failed in the warm-up (${kinds}).`)
      }
      return measuredOf(paced, rate)
    }),

  sections: sectionsOf,
}

function measuredOf(run: Awaited<ReturnType<typeof runPaced>>, rate: number): Measured {
  const { due, errors, late, max, cost } = run
  const percentiles = percentileNames.map((name) => {
    const value = run.percentile(name)
    return [name, value === FAILED ? null : value]
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
