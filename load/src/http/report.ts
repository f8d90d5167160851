import { styleText } from 'node:util'
import { isLocal } from '@onetrip/stack/address.ts'
import { percentiles } from '../drivers/http/generator.ts'
import type { Ratio, Summary } from '../statistics.ts'
import {
  counted,
  errorKinds,
  figure,
  percent,
  renderTable,
  withInterval,
  withRange,
} from '../table.ts'
import type { Circumstances, HttpSettings } from './result.ts'
import { GENERATOR_LIMIT, isDisturbed, referencesOf, type VariantSummary } from './summary.ts'

/** What `header` tells; any command's settings that have as much will do. */
type Told = Omit<Circumstances, 'options'> & {
  options: Omit<HttpSettings, 'variants' | 'generator'>
}

/** The lines above the table. */
export function header(circumstances: Told): string {
  const { machine, redis, poolSize, workers, generator, clients, options } = circumstances
  const { connections, duration, rounds, warmup } = options
  const gigabytes = (machine.memoryBytes / 2 ** 30).toFixed(0)
  const build = redis.build === null ? 'NOT a build of Onetrip' : `build ${redis.build}`
  const way =
    redis.transport === 'unix' ? 'Unix socket' : isLocal(redis.url) ? 'TCP over loopback' : 'TCP'
  const pool = poolSize === null ? '' : `, pool of ${counted(poolSize, 'connection')}`
  const rows = [
    ['Machine', `${machine.cpu}, ${machine.cores} cores, ${gigabytes} GiB, ${machine.kernel}`],
    ['Node', machine.node],
    [
      'Redis',
      `${redis.version}, ${build}, ${counted(redis.ioThreads, 'I/O thread')}, ${way}${pool}`,
    ],
    [
      'Load',
      `${generator}, ${counted(connections, 'connection')} × ${duration} s × ${counted(rounds, 'round')}, ${warmup} s warm-up`,
    ],
    ['Workload', workloadLine(options)],
    ...(workers === null || workers === 1 ? [] : [['APIs', `${counted(workers, 'worker')} each`]]),
    ...clientLines(clients).map((line, index) => [index === 0 ? 'Clients' : '', line]),
  ]
  return rows.map(([label = '', text]) => `${label.padEnd(9)}${text}`).join('\n')
}

function workloadLine({ workload, sessions, items, reads, seed }: Told['options']): string {
  const what = reads === 0 ? 'POST /views only' : `${percent(reads)} of the requests read`
  const zipf = items === 1 ? '' : ' (Zipf)'
  return `${workload}: ${counted(sessions, 'session')}, ${counted(items, 'item')}${zipf}, ${what}, seed ${seed}`
}

/** A line for each client: its version, and who uses it. */
function clientLines(clients: Circumstances['clients']): string[] {
  const users = Map.groupBy(Object.entries(clients), ([, client]) => client)
  return [...users].map(
    ([client, entries]) => `${client} (${entries.map(([variant]) => variant).join(', ')})`,
  )
}

const columns = [
  'variant',
  'requests/s\nmedian (range)',
  'p50\nms',
  'p99\nms',
  'errors',
  'Redis\nconn.\n/req.',
  'Redis\ncmds.\n/req.',
  'round\ntrips\n/req.',
  'gener.\nCPU µs\n/req.',
  'API\nCPU µs\n/req.',
  'Redis\nCPU µs\n/req.',
]

const nameOf = ({ variant, generatorAtLimit }: VariantSummary) =>
  `${variant}${generatorAtLimit ? ' *' : ''}`

/** The table: about 115 columns wide. */
export function table(summaries: readonly VariantSummary[]): string {
  const rows = summaries.map((row) => {
    // Clients that gather commands by themselves do not tell how often they write.
    const untold = row.roundTrips.median === 0 && row.commands.median > 0.5
    return [
      nameOf(row),
      withRange(row.requestsPerSecond),
      figure(row.latency.p50?.median ?? Number.NaN),
      p99(row),
      errorKinds(row.errors).replaceAll(', ', '\n'),
      row.connections.median.toFixed(2),
      row.commands.median.toFixed(2),
      untold ? '-' : row.roundTrips.median.toFixed(2),
      figure(row.generatorCpuMicros.median),
      figure(row.apiCpuMicros.median),
      figure(row.redisCpuMicros.median),
    ]
  })
  return renderTable({ head: columns, rows })
}

/** The table of latencies and bytes, both of HTTP. */
export function latencyTable(summaries: readonly VariantSummary[]): string {
  const names = Object.entries(percentiles) as [keyof typeof percentiles, number][]
  const middle = (summary: Summary | null) => figure(summary?.median ?? Number.NaN)
  return renderTable({
    head: [
      'latency, ms\n(medians)',
      ...names.map(([, percentile]) => `\np${percentile}`),
      '\nlongest',
      'bytes sent\n/request',
      'received\n/request',
    ],
    rows: summaries.map((row) => [
      nameOf(row),
      ...names.map(([name]) => middle(row.latency[name])),
      middle(row.latency.max),
      middle(row.bytesSent),
      middle(row.bytesReceived),
    ]),
  })
}

/** The table of how many times as many requests per second; empty when there is only one variant. */
export function ratioTable(summaries: readonly VariantSummary[]): string {
  if (summaries.length < 2) return ''
  const references = referencesOf(summaries.map(({ variant }) => variant))
  return renderTable({
    head: [
      'requests/s as a multiple of',
      ...references.map((reference) => `${reference}\nmean (95 % interval)`),
    ],
    rows: summaries.map((row) => [
      nameOf(row),
      ...references.map((reference) => {
        return row.variant === reference ? '1' : withInterval(row.ratios[reference] ?? null)
      }),
    ]),
  })
}

const p99 = ({ latency }: VariantSummary) => figure(latency.p99?.median ?? Number.NaN)

/** How sure a ratio is, in brackets. */
function certainty({ interval, min, max }: Ratio): string {
  if (!interval) return ''
  const sure = `95 % sure: ${figure(interval.low)} to ${figure(interval.high)}`
  return ` (${sure}; round by round: ${figure(min)} to ${figure(max)})`
}

/** More variants are easier to compare in the tables. */
const MOST_SENTENCES = 2

/** The result in sentences, and what the marks in the tables mean. */
export function conclusion(summaries: readonly VariantSummary[]): string {
  const [reference] = referencesOf(summaries.map(({ variant }) => variant))
  const base = summaries.find(({ variant }) => variant === reference)
  const told = summaries.length <= MOST_SENTENCES + 1 ? summaries : []
  const lines = told.flatMap((row) => {
    const ratio = reference && row.ratios[reference]
    if (!base || !ratio || ratio.mean === 0) return []
    const text =
      `${row.variant} answers ${figure(ratio.mean)} times as many requests per second as ` +
      `${base.variant}${certainty(ratio)}, with a p99 of ${p99(row)} ms instead of ${p99(base)} ms.`
    return [styleText('bold', text)]
  })
  const limited = summaries.filter(({ generatorAtLimit }) => generatorAtLimit)
  if (limited.length > 0) {
    const highest = Math.max(...limited.map((row) => row.generatorUtilization.max))
    lines.push(
      `* The generator was busy ${(highest * 100).toFixed(0)} % of the time (limit ${GENERATOR_LIMIT * 100} %): ` +
        'it may have been the bottleneck, so no ratio is given. Fewer connections or --generator wrk may help.',
    )
  }
  if (summaries.some(isDisturbed)) {
    const most = Math.max(...summaries.map(({ elsewhere }) => elsewhere))
    lines.push(
      `Up to ${(most * 100).toFixed(0)} % of the CPU time went to programs that are no part of this, or to ` +
        'other guests of the host: trust the CPU time per request rather than the rates, or repeat it.',
    )
  }
  if (summaries.some(({ errors }) => Object.keys(errors).length > 0)) {
    lines.push('requests/s counts answers with 2xx only; the errors are beside them.')
  }
  return lines.join('\n')
}
