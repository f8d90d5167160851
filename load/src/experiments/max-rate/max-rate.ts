import {
  type Percentile,
  percentileNames,
  percentText,
  shareOf,
} from '@onetrip/stack/measure/latencies.ts'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { apiOf, type HttpBench, openBench } from '../../drivers/http/bench.ts'
import { FAILED, pacedDoubts, runPaced } from '../../drivers/http/paced.ts'
import { baselineVariant } from '../../drivers/http/saturation.ts'
import {
  addTarget,
  addWorkload,
  type WorkloadFlags,
  withWorkload,
} from '../../drivers/http/shared-options.ts'
import type { TargetOptions } from '../../drivers/http/target.ts'
import {
  type Arrivals,
  arrivalsOption,
  arrivalTimes,
  secondsAt,
} from '../../drivers/pacer/arrivals.ts'
import { type PacedGenerator, startGenerator } from '../../drivers/pacer/pacer.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { errorKinds, figure } from '../../experiment/figures.ts'
import type { Row } from '../../experiment/rows.ts'
import { asRate, type Measured } from '../../experiment/shape.ts'
import { packageVersion } from '../../measure/machine.ts'
import { errors as errorsColumn, range, ratio, sectionOf } from '../../reporting/columns.ts'
import { highestRate } from './search.ts'

interface MaxRateOptions extends WorkloadFlags, TargetOptions {
  /** Such as `p99<10`, in milliseconds. */
  limit: string
  from: number
  runs: number
  arrivals: Arrivals
}

type Bench = HttpBench & {
  readonly generator: PacedGenerator
  /** The first rate of the next search, by variant. */
  readonly starts: Map<string, number>
}

const RATE = 'highestRate'
const PRECISION = 1.05
/** The number of requests in a run for ten of them to be beyond a percentile. */
const requestsFor = (percentile: Percentile) => Math.ceil(10 / (1 - shareOf(percentile)))

/** Searches for the highest rate of each variant within a latency limit. */
export const maxRate: Experiment<MaxRateOptions, Bench> = {
  name: 'max-rate',
  title: 'The highest rate within a latency limit',
  summary: 'search for the highest rate at which a percentile stays below a limit',
  group: 'Over HTTP',
  about: `
An open loop, like npm run load -- latency: requests are due at a fixed rate, and latency is measured from when a
request is due. The rate is doubled or halved until one rate is within the limit and one is not. Then the rates
between them are tried, until the result is within ${Math.round((PRECISION - 1) * 100)} %. A rate is rejected after two runs in which the percentile
was not below the limit, or any request failed (no 2xx) or was not sent. If no rate holds, errors has the failures
at the lowest rate. A run takes --duration, or longer (up to 20 s) if ten requests beyond the percentile need more
time. --runs limits the number of runs of a search.

For the measured stack, other services, workloads and environment variables, see npm run load -- http --help.

Examples:
  npm run load -- max-rate --limit 'p99<5'
  npm run load -- max-rate --limit 'p95<20' --variants batch --threshold 'highestRate>=5000'
  npm run load -- max-rate --limit 'p99<50' --from 200`,
  rounds: 3,
  duration: 2,
  quick: { rounds: 1, duration: 1, warmup: 0.5 },
  configure(command: Command) {
    command
      .addOption(
        new Option('--limit <condition>', 'a percentile and its limit in milliseconds')
          .argParser((text) => requireLimit(text))
          .default('p99<10'),
      )
      .option('--from <rate>', 'the first rate, in requests/s', wholeNumber(1, 1_000_000), 1_000)
      .option('--runs <n>', 'maximum runs of a search', wholeNumber(1, 100), 20)
      .addOption(arrivalsOption())
    addWorkload(command, { variants: ['naive', 'pipeline', 'batch'], warmup: 1 })
    addTarget(command)
  },
  complete: withWorkload,

  factors: [{ name: 'variant' }],
  subject: 'variant',
  metrics: [
    { name: RATE, label: 'highest requests/s', ...asRate },
    { name: 'latency', label: 'ms at that rate' },
    { name: 'runs', label: 'runs', format: 'whole' },
  ],
  progress: [RATE, 'latency'],
  doubts: {
    ...pacedDoubts,
    imprecise: {
      mark: '‡',
      text: 'The search ended at --runs before it reached a precision of 5 %. The highest rate may be higher.',
    },
  },
  baseline: baselineVariant,

  async prepare(context, options) {
    context.describe('software', { Generator: packageVersion('undici') })
    const bench = await openBench(context, options)
    const generator = startGenerator(context.signal)
    context.defer(() => generator.close())
    return { ...bench, generator, starts: new Map() }
  },
  cases: ({ apis }) => apis.map(({ variant }) => ({ variant })),
  warmUp: (cases, { warmup }) => (warmup > 0 ? cases : []),

  async measure({ variant }, bench, { round, options, context: { signal }, note }) {
    const api = apiOf(bench, variant)
    const { percentile, milliseconds } = limitOf(options.limit)
    let latencyAtBest: number | null = null
    let foreignCpuSeconds = 0
    let lowestFailed: (Pick<Measured, 'doubts' | 'errors'> & { rate: number }) | undefined
    const run = async (rate: number) => {
      const seconds =
        round === 0
          ? options.warmup
          : secondsAt(rate, {
              duration: options.duration,
              requests: requestsFor(percentile),
              rounds: 1,
            })
      const schedule = arrivalTimes({ ...options, rate, seconds, seed: options.seed + round })
      const paced = await runPaced(bench, api, { schedule, signal })
      const { errors, doubts } = paced
      const failed = paced.ok < paced.due
      // With too few requests for the percentile, all of them must be below the limit.
      const latency = failed ? FAILED : (paced.percentile(percentile) ?? paced.max ?? FAILED)
      const isHeld = latency < milliseconds
      const text = failed
        ? `failed (${errorKinds(errors)})`
        : `${figure(latency)} ms${isHeld ? '' : ', too slow'}`
      note(`${rate.toLocaleString('en-US')} requests/s: ${text}`)
      foreignCpuSeconds += paced.cost.foreignCpuSeconds
      if (isHeld) latencyAtBest = latency
      // If the generator was the bottleneck at that rate, the result is the generator's limit.
      else if (rate <= (lowestFailed?.rate ?? rate)) lowestFailed = { rate, errors, doubts }
      return isHeld
    }
    const start = bench.starts.get(api.variant) ?? options.from
    if (round === 0) {
      await run(start)
      return { values: {} }
    }
    const { rate, runs, isPrecise } = await highestRate(run, {
      ...{ start, precision: PRECISION, runs: options.runs },
    })
    if (rate !== null) bench.starts.set(api.variant, rate)
    return {
      values: {
        ...{ [RATE]: rate, latency: latencyAtBest, runs },
      },
      foreignCpuSeconds,
      errors: rate === null ? (lowestFailed?.errors ?? {}) : {},
      doubts: isPrecise ? (lowestFailed?.doubts ?? []) : ['imprecise'],
    }
  },

  sections: (rows, { options }) => [
    sectionOf(rows, {
      title: 'The highest rates',
      caption: `Highest rate with ${limitText(options.limit)}, median of the rounds (range)`,
      columns: [
        range(RATE, rows),
        ...(rows.all.length > 1 ? [ratio(RATE, `× ${rows.all[0]?.baseline(rows)?.subject}`)] : []),
        ...['latency', 'runs', errorsColumn],
      ],
    }),
  ],
  claims(rows, { options }) {
    const sound = rows.all.filter((row) => row.doubts.length === 0 && row.value(RATE) !== null)
    const text = (row: Row) => `${figure(row.value(RATE) ?? 0)} requests/s with ${row.subject}`
    return [
      sound.length > 0 && `${limitText(options.limit)} holds up to ${sound.map(text).join(', ')}.`,
    ]
  },
}

/** `p99 < 10 ms` */
function limitText(text: unknown): string {
  const { percentile, milliseconds } = limitOf(String(text))
  return `${percentText(percentile)} < ${milliseconds} ms`
}

function requireLimit(text: string): string {
  const { percentile, milliseconds } = limitOf(text)
  return `${percentile}<${milliseconds}`
}

function limitOf(text: string): { percentile: Percentile; milliseconds: number } {
  const [, name, value] = /^\s*(p\d+)\s*<\s*(\d+(?:\.\d+)?)\s*$/.exec(text) ?? []
  const percentile = percentileNames.find((one) => one === name)
  const milliseconds = Number(value)
  if (percentile && milliseconds > 0) return { percentile, milliseconds }
  throw new InvalidArgumentError(
    `It must have the form 'p99<5', in milliseconds, with one of ${percentileNames.join(', ')}.`,
  )
}
