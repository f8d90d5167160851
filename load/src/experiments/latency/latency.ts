import { seconds, wholeNumber } from '@onetrip/stack/parsers.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { Option } from 'commander'
import { GENERATOR_LIMIT } from '../../drivers/generator-limit.ts'
import { apiOf, type HttpBench, openBench } from '../../drivers/http/bench.ts'
import { baselineVariant, saturationMetrics } from '../../drivers/http/saturation.ts'
import {
  addTarget,
  addWorkload,
  type WorkloadFlags,
  withWorkload,
  workloadOptionNames,
} from '../../drivers/http/shared-options.ts'
import type { TargetOptions } from '../../drivers/http/target.ts'
import {
  type Arrivals,
  arrivals,
  arrivalTimes,
  MOST_SECONDS,
  requireBounded,
  secondsAt,
} from '../../drivers/pacer/arrivals.ts'
import {
  curveOf,
  type Percentile,
  percentileNames,
  percentText,
  together,
} from '../../drivers/pacer/latencies.ts'
import { type PacedGenerator, startGenerator } from '../../drivers/pacer/pacer.ts'
import { namesOption, numbers, numbersOption } from '../../drivers/redis/options.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { errorKinds, figure, withRange } from '../../experiment/figures.ts'
import type { Row, Rows } from '../../experiment/rows.ts'
import type { Section } from '../../experiment/section.ts'
import { asLatency, type Metric } from '../../experiment/shape.ts'
import { packageVersion } from '../../measure/package-version.ts'
import { usageOf } from '../../measure/usage.ts'
import { percentiles } from '../../reporting/charts.ts'
import { type Column, errors, tableOf } from '../../reporting/columns.ts'
import { variants } from '../../variants.ts'
import { isLate, lateP99, percentileOf, pooled } from './pooled.ts'
import {
  capacityText,
  givenRates,
  perSecond,
  type Rates,
  ratesOf,
  sharesOfCapacity,
} from './rates.ts'

interface LatencyOptions extends WorkloadFlags, TargetOptions {
  /** Requests per second, instead of shares. */
  rate?: number[]
  /** Of the slowest variant's capacity, in percent. */
  shares: number[]
  arrivals: Arrivals
  /** Of each variant at each rate, over all rounds; 0 for runs that are all equally long. */
  requests: number
  /** Seconds, per variant. */
  warmup: number
}

interface Bench extends HttpBench, Rates {
  generator: PacedGenerator
}

/** The value of a percentile among the requests that failed or were not sent. */
const FAILED = Number.POSITIVE_INFINITY

/** The variants of the API beside each other, all at the same fixed rates. */
export const latency: Experiment<LatencyOptions, Bench> = {
  name: 'latency',
  title: 'Latency at a fixed rate',
  summary: 'compare how long answers take at a fixed rate',
  group: 'Over HTTP',
  about: `
Requests are due at a fixed rate, whatever the API does, as the visitors of a site come whether or not it is
quick. The clock of a request starts when it is due, so a stall counts for every request that was due
meanwhile; at full speed (npm run load -- http) it stops the requests, too, and hardly shows.

Each variant is run at full speed first. The rates are shares of what the slowest can do, the same for all.
--rate sets them instead; --compare takes those of that file. A request that fails, or still waits for a
connection a second after the end, counts as slower than all others. A percentile is shown when at least ten
requests are beyond it: p99.99 needs --requests 100000. docs/method.md has more.

Which stack is measured, the workloads and the environment variables: see npm run load -- http --help.

Examples:
  npm run load -- latency --quick
  npm run load -- latency --variants naive,batch,connect-redis --shares 50,90
  npm run load -- latency --rate 1000,5000 --variants pipeline,batch --arrivals poisson
  npm run load -- latency --full --json latency.json --html latency.html
  REDIS_URL=redis://127.0.0.1:6379 npm run load -- latency --url http://127.0.0.1:3000 --rate 500`,
  rounds: 3,
  duration: 3,
  quick: { rounds: 1, duration: 2, warmup: 0.5 },
  full: { rounds: 5, duration: 3, warmup: 2, requests: 100_000 },
  seconds: { quick: 50, usual: 140, full: 650 },
  configure(command) {
    command
      .addOption(
        numbersOption('--shares <list>', 'rates, in percent of what the slowest variant can do', {
          ...{ min: 1, max: 1_000, defaults: [25, 50, 75, 90] },
        }),
      )
      .addOption(
        new Option('--rate <list>', 'rates in requests/s, instead of --shares')
          .argParser(numbers(1, 1_000_000))
          .conflicts('shares'),
      )
      .addOption(namesOption('--variants <list>', variants, ['naive', 'pipeline', 'batch']))
      .addOption(
        new Option('--arrivals <how>', 'evenly spaced, or at random times of the same mean rate')
          .choices(arrivals)
          .default('even'),
      )
      .option('--connections <n>', 'HTTP connections at the same time', wholeNumber(1, 10_000), 64)
      .option(
        '--requests <n>',
        `requests of each variant at each rate, over all rounds: makes runs longer than --duration where ${MOST_SECONDS} s are enough`,
        wholeNumber(0, 10_000_000),
        0,
      )
      .option('--warmup <seconds>', 'per variant, before the first round', seconds(0, 600), 1)
    addTarget(addWorkload(command))
  },
  complete: withWorkload,

  factors: [
    { name: 'at', label: 'rate' },
    { name: 'variant', label: 'variant' },
  ],
  subject: 'variant',
  metrics: [
    { name: 'rate', label: 'due requests/s', kind: 'given' },
    { name: 'capacity', label: 'at full speed requests/s' },
    { name: 'due', label: 'requests due' },
    ...percentileNames.map(
      (name): Metric => ({
        ...{ name, label: `${percentText(name)} ms` },
        ...(['p50', 'p99'].includes(name) && asLatency),
      }),
    ),
    { name: 'max', label: 'longest ms' },
    { name: 'generatorBusy', label: 'generator busy', format: 'percent' },
    ...saturationMetrics.filter(({ name }) => name.endsWith('CpuMicros')),
  ],
  progress: ['p50', 'p99', 'max'],
  doubts: {
    late: {
      mark: '*',
      text: 'Requests were sent too late although a connection was free: nothing is claimed from these rows. Lower rates, or a machine with more cores, may help.',
      isShownBy: (rounds) => isLate(pooled(rounds)),
    },
    generator: {
      mark: '**',
      text: `The thread that sends was busy ${GENERATOR_LIMIT * 100} % of the time or more: nothing is claimed from these rows.`,
    },
  },
  loadOptions: ['connections', 'arrivals', ...workloadOptionNames],
  baseline: baselineVariant,

  async prepare(context, options) {
    for (const rate of options.rate ?? []) {
      requireBounded(rate, secondsAt(rate, options))
    }
    context.describe('software', { Generator: packageVersion('undici') })
    const bench = await openBench(context, withWorkload(options))
    const { comparedWith } = context
    const rates = options.rate
      ? givenRates(options.rate)
      : comparedWith
        ? ratesOf(comparedWith)
        : await sharesOfCapacity(bench, context, options.shares, options)
    const generator = startGenerator(context.signal)
    context.defer(() => generator.close())
    return { ...bench, ...rates, generator }
  },
  cases: ({ rates, apis }) =>
    rates.flatMap(({ at }) => apis.map(({ variant }) => ({ at, variant }))),
  warmUp: (cases, { warmup }) =>
    warmup > 0 ? cases.filter(({ at }) => at === cases.at(-1)?.at) : [],

  async measure({ at, variant }, bench, { round, options, context: { signal } }) {
    const { rates, capacity, generator, monitor, owned, foreign } = bench
    const api = apiOf(bench, variant)
    const rate = rates.find((one) => one.at === at)?.rate ?? Number.NaN
    const schedule = arrivalTimes({
      rate,
      seconds: round === 0 ? options.warmup : secondsAt(rate, options),
      arrivals: options.arrivals,
      seed: options.seed + round, // the same for all variants of a round
    })
    const { url } = api
    const { result: run, cost } = await usageOf({ url, monitor, foreign, signal }, () =>
      generator.run({ url, owned, calls: bench.calls(api), schedule }),
    )
    const { due, ok, notSent, lateness, latencies } = run
    const failures = { ...(notSent > 0 && { 'not sent': notSent }), ...run.errors }
    if (round === 0 && ok === 0) {
      throw new Problem(
        `No request succeeded for ${api.variant} (${errorKinds(failures)}): there is nothing to compare.`,
      )
    }
    const own = together([latencies])
    const { generatorBusy, generatorCpuMicros, apiCpuMicros, redisCpuMicros } = cost.values
    return {
      values: {
        rate,
        capacity: capacity.get(api.variant) ?? null,
        due,
        ...Object.fromEntries(
          percentileNames.map((name) => {
            const value = percentileOf({ latency: own, due }, name)
            return [name, value === FAILED ? null : value]
          }),
        ),
        max: ok > 0 ? own.maxValue / 1_000 : null,
        generatorBusy,
        generatorCpuMicros,
        apiCpuMicros,
        redisCpuMicros,
      },
      foreignCpuSeconds: cost.foreignCpuSeconds,
      doubts: cost.doubts,
      errors: failures,
      histograms: { latency: latencies, lateness },
    }
  },

  sections: (rows, { options }) => [
    {
      title: 'How it is measured',
      paragraphs: [
        `Requests are due at a fixed rate (${options.arrivals === 'even' ? 'evenly spaced' : 'at random times, a Poisson process'}), and the clock of each starts when it is due. One that failed or was not sent counts as slower than all others. A percentile needs ten requests beyond it. "Sent late" is how late requests were sent although a connection was free; it is a part of their latency.`,
        ...capacityLines(rows),
      ],
      tables: [],
    },
    ...rows.by('at').map(({ rows: own }) => sectionAt(own)),
  ],
  claims: claimsOf,
}

function capacityLines(rows: Rows): string[] {
  const known = rows.all.filter((row) => row.median('capacity') !== null)
  const capacity = new Map(known.map((row) => [row.subject, row.median('capacity') ?? 0]))
  return capacity.size > 0 ? [capacityText(capacity)] : []
}

/** `1,875 requests/s, 75 % of what the slowest can do`. */
function rateText({ all: [first] }: Rows): string {
  const rate = perSecond(first?.median('rate') ?? Number.NaN)
  const at = first?.text('at') ?? ''
  return at === rate ? rate : `${rate}, ${at} of what the slowest can do`
}

function sectionAt(rows: Rows): Section {
  const hasFailures = rows.all.some((row) => Object.keys(row.errors).length > 0)
  const chart = percentiles(rows, {
    title: `Latency by percentile at ${rateText(rows)}`,
    unit: 'ms',
    curve: ({ samples }) => curveOf(pooled(samples).latency, pooled(samples).due),
  })
  return {
    title: `At ${rateText(rows)}`,
    charts: chart.lines.length > 0 ? [chart] : [],
    tables: [
      tableOf(rows, {
        caption: `ms at ${rateText(rows)}: all rounds together (range of the rounds)${hasFailures ? '; failed: among the requests that failed or were not sent, which count as the slowest' : ''}`,
        columns: [
          ...(['p50', 'p90', 'p99', 'p999', 'p9999'] as const).map(percentileColumn),
          { head: 'longest ms', cell: (row) => figure(Math.max(...row.values('max'))) },
          { head: 'requests due', cell: (row) => figure(row.total('due')) },
          errors,
          { head: 'sent late p99 ms', cell: ({ samples }) => figure(lateP99(pooled(samples))) },
          ...['apiCpuMicros', 'redisCpuMicros'],
        ],
      }),
    ],
  }
}

function percentileColumn(name: Percentile): Column {
  return {
    head: `${percentText(name)} ms`,
    cell(row) {
      const value = percentileOf(pooled(row.samples), name)
      if (value === FAILED) return 'failed'
      if (value === null) return '-'
      const { min = value, max = value } = row.summary(name) ?? {}
      return withRange({ median: value, min, max })
    },
  }
}

/** At the highest rate at which most rows are sound: each variant beside the others. */
function claimsOf(rows: Rows): string[] {
  const p99 = (row: Row) => percentileOf(pooled(row.samples), 'p99') ?? FAILED
  const isSound = (row: Row) => row.doubts.length === 0 && Number.isFinite(p99(row))
  const sound = rows.by('at').map(({ rows: own }) => own.filter(isSound))
  const most = Math.max(...sound.map(({ all }) => all.length))
  const best = sound.findLast(({ all }) => all.length === most)
  const told = (best?.all ?? [])
    .toSorted((a, b) => p99(a) - p99(b))
    .map((row) => `${figure(p99(row))} ms with ${row.subject}`)
  if (!best || most < 2) return []
  return [`At ${rateText(best)}, 99 % of the answers take at most ${told.join(', ')}.`]
}
