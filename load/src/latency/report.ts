import { styleText } from 'node:util'
import { secondsAt } from '../drivers/pacer/arrivals.ts'
import { isAmongFailed } from '../drivers/pacer/latencies.ts'
import { DISTURBED } from '../measure/machine-cpu.ts'
import type { Summary } from '../statistics.ts'
import { errorKinds, figure, percent, renderTable } from '../table.ts'
import type {
  Doubt,
  LatencyRate,
  LatencyResult,
  LatencySettings,
  LatencySummary,
  Percentiles,
} from './result.ts'

/** `1,875 requests/s (75 % of what naive can do)`. */
export function rateText(
  { share, requestsPerSecond }: LatencyRate,
  capacity: LatencyResult['capacity'],
): string {
  const of =
    share === null || !capacity
      ? ''
      : ` (${Math.round(share * 100)} % of what ${capacity.slowest} can do)`
  return `${figure(requestsPerSecond)} requests/s${of}`
}

/** What each variant answered at full speed, in a line. */
export function capacityLine({
  requestsPerSecond,
  slowest,
}: NonNullable<LatencyResult['capacity']>) {
  const told = Object.entries(requestsPerSecond).map(
    ([variant, { median }]) => `${variant} ${figure(median)}`,
  )
  return `At full speed, requests/s: ${told.join(', ')}. The shares are of what ${slowest} can do.`
}

/** How long runs are that are not all equally long. */
export function lengthLine(rates: readonly LatencyRate[], options: LatencySettings): string {
  const told = rates.map(
    ({ requestsPerSecond: rate }) => `${figure(rate)} for ${figure(secondsAt(rate, options))} s`,
  )
  return `Runs, requests/s: ${told.join(', ')}.`
}

const columns = [
  'variant',
  'p50 ms',
  'p75 ms',
  'p90 ms',
  'p99 ms\n(rounds)',
  'p99.9 ms',
  'p99.99 ms',
  'max ms',
  'not sent,\nerrors',
  'sent late\np99 ms',
  'API\nCPU µs\n/req.',
  'Redis\nCPU µs\n/req.',
]

type Result = Pick<LatencyResult, 'rates' | 'summaries' | 'capacity'>

const atRate = ({ summaries }: Result, { requestsPerSecond }: LatencyRate) =>
  summaries.filter(({ rate }) => rate === requestsPerSecond)

/** A table for each rate: about 115 columns wide. */
export function tables(result: Result): string {
  return result.rates
    .map((rate) =>
      renderTable({
        title: rateText(rate, result.capacity),
        head: columns,
        rows: atRate(result, rate).map(cells),
      }),
    )
    .join('\n\n')
}

function cells(row: LatencySummary): string[] {
  const { variant, doubts, latency, rounds, notSent, errors, pacer, perRequest } = row
  const kinds = { ...(notSent > 0 && { 'not sent': notSent }), ...errors }
  return [
    `${variant}${doubts.map((doubt) => ` ${marks[doubt]}`).join('')}`,
    percentile(row, 'p50'),
    percentile(row, 'p75'),
    percentile(row, 'p90'),
    percentile(row, 'p99', rounds.p99),
    percentile(row, 'p999'),
    percentile(row, 'p9999'),
    figure(latency.max ?? Number.NaN),
    errorKinds(kinds).replaceAll(', ', '\n'),
    figure(pacer.lateness.p99),
    figure(perRequest.apiCpuMicros.median),
    figure(perRequest.redisCpuMicros.median),
  ]
}

function percentile(row: LatencySummary, name: keyof Percentiles, rounds?: Summary | null) {
  if (isAmongFailed(row, name)) return 'failed'
  return `${figure(row.latency[name] ?? Number.NaN)}${range(rounds ?? null)}`
}

function range(rounds: Summary | null): string {
  if (!rounds || rounds.min === rounds.max) return ''
  return ` (${figure(rounds.min)}-${figure(rounds.max)})`
}

const marks: Record<Doubt, string> = { 'pacer late': '*', 'generator at its limit': '**' }

const explanations: Record<Doubt, string> = {
  'pacer late':
    'Requests were sent too late although a connection was free: nothing is claimed from these rows. Lower rates, or a machine with more cores, may help.',
  'generator at its limit':
    'The thread that sends was busy nearly all the time: nothing is claimed from these rows.',
}

/** The result in sentences, and what the marks in the tables mean. */
export function conclusions(result: Result): string {
  const { summaries } = result
  const doubts = new Set(summaries.flatMap((row) => row.doubts))
  const lines = [
    ...sentences(result),
    ...[...doubts].map((doubt) => `${marks[doubt]} ${explanations[doubt]}`),
  ]
  if (summaries.some(({ ok, due }) => ok < due)) {
    lines.push('Requests that failed or were not sent count as slower than all others.')
  }
  const most = Math.max(...summaries.map(({ elsewhere }) => elsewhere))
  if (most >= DISTURBED) {
    lines.push(
      `Up to ${percent(most)} of the CPU time went to programs that are no part of this, or to other ` +
        'guests of the host: the latencies are longer than those of an idle machine.',
    )
  }
  return lines.join('\n')
}

const isSound = ({ doubts, elsewhere, latency }: LatencySummary) =>
  doubts.length === 0 && elsewhere < DISTURBED && latency.p99 !== null

/** At the highest rate at which most rows are sound: each variant beside the slowest one. */
function sentences(result: Result): string[] {
  const sound = result.rates.map((rate) => ({
    rate,
    rows: atRate(result, rate).filter(isSound),
  }))
  const most = Math.max(...sound.map(({ rows }) => rows.length))
  const best = sound.findLast(({ rows }) => rows.length === most)
  if (!best || most < 2) return []
  const told = best.rows
    .toSorted((a, b) => (a.latency.p99 ?? 0) - (b.latency.p99 ?? 0))
    .map((row) => `${percentile(row, 'p99')} ms with ${row.variant}`)
  const at = rateText(best.rate, result.capacity)
  return [styleText('bold', `At ${at}, 99 % of the answers take at most ${told.join(', ')}.`)]
}
