import {
  GENERATOR_LIMIT,
  isDisturbed,
  referencesOf,
  type VariantSummary,
} from '../../http/summary.ts'
import type { Ratio } from '../../statistics.ts'
import { errorKinds, figure, withRange } from '../../table.ts'
import type { BarChart, GroupedChart, ReportTable } from '../model.ts'

// Tables and charts of one comparison of variants over HTTP.

/** A variant's name with the marks that `notesOf` explains. */
function nameOf(row: VariantSummary): string {
  return `${row.variant}${row.generatorAtLimit ? ' *' : ''}${isDisturbed(row) ? ' †' : ''}`
}

/** Whether nothing is claimed from a row. */
export const isDoubtful = (row: VariantSummary): boolean => row.generatorAtLimit || isDisturbed(row)

const medianOf = (summary: { median: number } | null | undefined) =>
  figure(summary?.median ?? Number.NaN)

/** Of a run in which nothing succeeded, the file has null. */
const twoDigits = ({ median }: { median: number | null }) => median?.toFixed(2) ?? '-'

export function throughputTable(
  summaries: readonly VariantSummary[],
  caption: string,
): ReportTable {
  return {
    caption,
    head: [
      'variant',
      'requests/s (range)',
      'p50 ms',
      'p99 ms',
      'Redis connections /req.',
      'commands /req.',
      'round trips /req.',
      'API CPU µs /req.',
      'Redis CPU µs /req.',
      'errors',
    ],
    rows: summaries.map((row) => {
      // Clients that gather commands by themselves do not tell how often they write.
      const untold = row.roundTrips.median === 0 && row.commands.median > 0.5
      return [
        nameOf(row),
        withRange(row.requestsPerSecond),
        medianOf(row.latency.p50),
        medianOf(row.latency.p99),
        twoDigits(row.connections),
        twoDigits(row.commands),
        untold ? '-' : twoDigits(row.roundTrips),
        medianOf(row.apiCpuMicros),
        medianOf(row.redisCpuMicros),
        errorKinds(row.errors),
      ]
    }),
    texts: [9],
  }
}

/** How many times as many requests per second; undefined where no two can be compared. */
export function ratioTable(
  summaries: readonly VariantSummary[],
  caption: string,
): ReportTable | undefined {
  const references = referencesOf(summaries.map(({ variant }) => variant))
  if (!summaries.some(({ ratios }) => Object.keys(ratios).length > 0)) return undefined
  return {
    caption,
    head: ['variant', ...references.flatMap((name) => [`× ${name} (range)`, '95 % interval'])],
    rows: summaries.map((row) => [
      nameOf(row),
      ...references.flatMap((name) => {
        if (row.variant === name) return ['1', '']
        const ratio = row.ratios[name]
        return ratio ? [withRange(ratio), interval(ratio)] : ['-', '-']
      }),
    ]),
  }
}

const interval = ({ interval }: Ratio) =>
  interval ? `${figure(interval.low)}-${figure(interval.high)}` : '-'

/** Percentiles at full speed: the variants have different rates there. */
export function latencyTable(summaries: readonly VariantSummary[]): ReportTable {
  const names = { p50: 'p50', p90: 'p90', p99: 'p99', p999: 'p99.9', max: 'longest' } as const
  const known = (Object.keys(names) as (keyof typeof names)[]).filter((name) =>
    summaries.some(({ latency }) => latency[name]),
  )
  return {
    caption: 'Latency at full speed, ms: medians of the rounds (range)',
    head: ['variant', ...known.map((name) => names[name])],
    rows: summaries.map((row) => [
      nameOf(row),
      ...known.map((name) => withRange(row.latency[name])),
    ]),
  }
}

export function throughputChart(summaries: readonly VariantSummary[]): BarChart {
  const told = summaries.map(
    ({ variant, requestsPerSecond }) => `${variant} ${withRange(requestsPerSecond)}`,
  )
  return {
    kind: 'bars',
    title: `Requests per second: medians of the rounds; the lines across the ends are their range${
      summaries.some(isDoubtful) ? '; hatched is what no ratio is claimed from' : ''
    }`,
    description: `Requests per second: ${told.join('; ')}.`,
    unit: 'requests/s',
    bars: summaries.map((row) => ({
      name: row.variant,
      value: row.requestsPerSecond.median,
      low: row.requestsPerSecond.min,
      high: row.requestsPerSecond.max,
      doubtful: isDoubtful(row),
    })),
  }
}

export function cpuChart(summaries: readonly VariantSummary[]): GroupedChart {
  const told = summaries.map(
    ({ variant, apiCpuMicros, redisCpuMicros }) =>
      `${variant} ${figure(apiCpuMicros.median)} and ${figure(redisCpuMicros.median)}`,
  )
  return {
    kind: 'stacked',
    title: 'CPU time per request, by who used it',
    description: `Microseconds of CPU time of the API and of Redis per request: ${told.join('; ')}.`,
    unit: 'µs of CPU per request',
    names: summaries.map(({ variant }) => variant),
    groups: [
      { name: 'API', values: summaries.map(({ apiCpuMicros }) => apiCpuMicros.median) },
      { name: 'Redis', values: summaries.map(({ redisCpuMicros }) => redisCpuMicros.median) },
    ],
  }
}

/** What the marks mean. */
export function notesOf(summaries: readonly VariantSummary[]): string[] {
  const notes: string[] = []
  if (summaries.some(({ generatorAtLimit }) => generatorAtLimit)) {
    notes.push(
      `* The generator was busy ${GENERATOR_LIMIT * 100} % of the time or more and may have been the bottleneck: no ratio is claimed.`,
    )
  }
  if (summaries.some(isDisturbed)) {
    const most = Math.max(...summaries.map(({ elsewhere }) => elsewhere))
    notes.push(
      `† Other programs, or other guests of the host, had up to ${(most * 100).toFixed(0)} % of the CPU time: no ratio is claimed; trust the CPU time per request rather than the rates.`,
    )
  }
  if (summaries.some(({ errors }) => Object.keys(errors).length > 0)) {
    notes.push('Requests/s counts answers with 2xx only.')
  }
  return notes
}
