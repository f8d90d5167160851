import { endingText } from '../../experiment/rounds.ts'
import type { LatencyRate, LatencyResult, LatencySummary } from '../../latency/result.ts'
import { DISTURBED } from '../../measure/machine-cpu.ts'
import { errorKinds, figure } from '../../table.ts'
import type { LineChart, Part, ReportTable, Section } from '../model.ts'
import { apisText, clientsText, loadFacts, provenanceOf, redisText } from './provenance.ts'
import { sampleTable } from './samples.ts'

/** `npm run load -- latency`. */
export function latencyPart(result: LatencyResult): Part {
  const { rates, samples, options, redis, poolSize, workers, clients, generator } = result
  return {
    name: 'latency',
    title: 'Latency at a fixed rate',
    headline: headlineOf(result),
    sections: [
      {
        title: 'How it is measured',
        paragraphs: [
          ...endingText(result),
          `Requests are due at a fixed rate (${options.arrivals === 'even' ? 'evenly spaced' : 'at random times, Poisson'}), whatever the API does. The clock of each starts when it was due, so a stall counts for every request that had to wait for it; one that failed or was not sent counts as slower than all others. A percentile needs ten requests beyond it.`,
          ...capacityText(result),
        ],
      },
      ...rates.map((rate) => rateSection(result, rate)),
    ],
    provenance: provenanceOf(result, [
      ['Redis', redisText(redis)],
      ['APIs', apisText(workers, poolSize)],
      ['Clients', clientsText(clients)],
      ...loadFacts(generator, options),
    ]),
    samples: [sampleTable('Every run at a fixed rate', samples)],
    document: result,
  }
}

const rateText = ({ share, requestsPerSecond }: LatencyRate) =>
  share === null
    ? `${figure(requestsPerSecond)} requests/s`
    : `${figure(requestsPerSecond)} requests/s, ${Math.round(share * 100)} % of what the slowest can do`

function capacityText({ capacity }: LatencyResult): string[] {
  if (!capacity) return []
  const told = Object.entries(capacity.requestsPerSecond).map(
    ([variant, { median }]) => `${variant} ${figure(median)}`,
  )
  return [
    `At full speed (${capacity.generator}) the variants answered, a second: ${told.join(', ')}. The shares are of ${capacity.slowest}'s.`,
  ]
}

const atRate = ({ summaries }: LatencyResult, { requestsPerSecond }: LatencyRate) =>
  summaries.filter(({ rate }) => rate === requestsPerSecond)

function rateSection(result: LatencyResult, rate: LatencyRate): Section {
  const rows = atRate(result, rate)
  const curves = rows.filter(({ curve }) => curve.length > 1)
  return {
    title: `At ${rateText(rate)}`,
    charts: curves.length > 0 ? [chart(curves, rate)] : [],
    tables: [table(rows, rate)],
    notes: notesOf(rows),
  }
}

const isDoubtful = ({ doubts, elsewhere }: LatencySummary) =>
  doubts.length > 0 || elsewhere >= DISTURBED

const nameOf = ({ variant, doubts, elsewhere }: LatencySummary) =>
  `${variant}${doubts.length > 0 ? ' *' : ''}${elsewhere >= DISTURBED ? ' †' : ''}`

const percentiles = {
  p50: 'p50',
  p90: 'p90',
  p99: 'p99',
  p999: 'p99.9',
  p9999: 'p99.99',
} as const

function table(rows: readonly LatencySummary[], rate: LatencyRate): ReportTable {
  const names = Object.keys(percentiles) as (keyof typeof percentiles)[]
  const ms = (value: number | null) => figure(value ?? Number.NaN)
  return {
    caption: `ms at ${figure(rate.requestsPerSecond)} requests/s: all rounds together (range of the rounds)`,
    head: [
      'variant',
      ...names.map((name) => percentiles[name]),
      'longest',
      'requests due',
      'not sent',
      'errors',
      'API CPU µs /req.',
      'Redis CPU µs /req.',
    ],
    rows: rows.map((row) => [
      nameOf(row),
      ...names.map((name) => {
        const { [name]: rounds } = row.rounds
        const range =
          rounds && rounds.min !== rounds.max ? ` (${ms(rounds.min)}-${ms(rounds.max)})` : ''
        return `${ms(row.latency[name])}${range}`
      }),
      ms(row.latency.max),
      figure(row.due),
      String(row.notSent),
      errorKinds(row.errors),
      figure(row.perRequest.apiCpuMicros.median),
      figure(row.perRequest.redisCpuMicros.median),
    ]),
    texts: [names.length + 4],
  }
}

function chart(rows: readonly LatencySummary[], rate: LatencyRate): LineChart {
  const told = rows.map(
    ({ variant, latency }) =>
      `${variant} p50 ${figure(latency.p50 ?? Number.NaN)}, p99 ${figure(latency.p99 ?? Number.NaN)}`,
  )
  return {
    kind: 'lines',
    title: `Latency by percentile at ${rateText(rate)}`,
    description: `Milliseconds from when a request was due to the end of its answer: ${told.join('; ')}.`,
    unit: 'ms',
    x: 'percentiles',
    logarithmic: true,
    lines: rows.map((row) => ({
      name: row.variant,
      points: row.curve
        .filter(({ share }) => share < 1)
        .map(({ share, ms }) => [share, ms] as const),
    })),
  }
}

function notesOf(rows: readonly LatencySummary[]): string[] {
  const doubts = new Set(rows.flatMap((row) => row.doubts))
  const notes: string[] = [...doubts].map((doubt) =>
    doubt === 'pacer late'
      ? '* Requests were sent too long after they were due although a connection was free: the generator, not the API, may have made them late.'
      : '* The thread that sends was busy nearly all the time: nothing is claimed from this row.',
  )
  if (rows.some(({ elsewhere }) => elsewhere >= DISTURBED)) {
    const most = Math.max(...rows.map(({ elsewhere }) => elsewhere))
    notes.push(
      `† Other programs, or other guests of the host, had up to ${(most * 100).toFixed(0)} % of the CPU time: latencies are longer than the machine's own.`,
    )
  }
  return notes
}

/** The p99 of batch and naive at the highest rate at which both are sound. */
function headlineOf(result: LatencyResult): string[] {
  for (const rate of result.rates.toSorted((a, b) => b.requestsPerSecond - a.requestsPerSecond)) {
    const rows = atRate(result, rate).filter((row) => !isDoubtful(row))
    const naive = rows.find(({ variant }) => variant === 'naive')
    const batch = rows.find(({ variant }) => variant === 'batch')
    if (!naive || !batch || batch.latency.p99 === null) continue
    const base = naive.latency.p99
    const than = base === null ? 'too many that failed to tell' : `${figure(base)} ms`
    return [
      `At ${rateText(rate)}, 99 % of the answers take at most ${figure(batch.latency.p99)} ms with batch, and with naive ${than}.`,
    ]
  }
  return []
}
