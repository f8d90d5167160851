import { styleText } from 'node:util'
import type { Summary } from '../statistics.ts'
import { figure, type TextTable, withRange } from '../table.ts'
import { documentRow } from './documents.ts'
import { describeLink, type LinkPlan } from './links.ts'
import type { StoreRow } from './summary.ts'

/** What was measured over one link. */
export interface LinkResult {
  plan: LinkPlan
  /** Median, in milliseconds, at each Redis of the comparison. */
  pingMs: readonly number[]
  rows: readonly StoreRow[]
}

/** The title of the table that has ours beside the documents'. */
export const COMPARISON =
  "benchmark_update_token, calls per second: ours and the documents' (table 4)"

/** With fewer calls than this, what Redis does of its own accord outweighs what the calls cost. */
export const CALLS_FOR_CPU = 500

/** `0.271 ms`; several where there are several Redis. */
const pingTimes = (milliseconds: readonly number[]) =>
  milliseconds.map((ms) => `${Number(ms.toPrecision(3))} ms`).join(', ')

/** The documents' table, and ours beside it; undefined where nothing can be compared. */
export function documentsTable(results: readonly LinkResult[]): TextTable | undefined {
  const rows = results.flatMap((result) => {
    const compared = pair(result)
    if (!compared) return []
    const { sequential, pipeline, documents } = compared
    return [
      [
        result.plan.name,
        pingTimes(result.pingMs),
        figure(sequential.callsPerSecond.median),
        figure(pipeline.callsPerSecond.median),
        withRange(pipeline.ratio),
        figure(documents.sequential),
        figure(documents.pipeline),
        (documents.pipeline / documents.sequential).toFixed(1),
      ],
    ]
  })
  if (rows.length === 0) return undefined
  return {
    title: COMPARISON,
    head: [
      'link',
      'PING\ntakes',
      'sequential',
      'pipeline',
      'ratio\n(range)',
      'documents:\nsequential',
      'documents:\npipeline',
      'documents:\nratio',
    ],
    rows,
  }
}

/** The two of the documents over one link, if both ran with one connection. */
function pair({ plan, rows }: LinkResult) {
  const sequential = rows.find(({ strategy }) => strategy === 'sequential')
  const pipeline = rows.find(({ strategy }) => strategy === 'pipeline')
  const documents = documentRow(plan.name)
  if (!sequential || !pipeline || !documents || severalSettings(rows)) return undefined
  return { sequential, pipeline, documents }
}

/** Everything over one link. */
export function linkTable({ plan, pingMs, rows }: LinkResult): TextTable {
  const several = severalSettings(rows)
  return {
    title: `${describeLink(plan)} (PING: ${pingTimes(pingMs)})`,
    head: [
      'strategy',
      ...(several ? ['connec-\ntions', 'I/O\nthreads'] : []),
      'calls/s\nmedian (range)',
      several ? '× first\n(range)' : '× sequential\n(range)',
      'p50\nms',
      'p99\nms',
      'client\nCPU µs\n/call',
      'Redis\nCPU µs\n/call',
      'of which\nmain\nthread',
    ],
    rows: rows.map((row) => {
      const cpu = (value: number) => (row.calls < CALLS_FOR_CPU ? '-' : figure(value))
      return [
        row.strategy,
        ...(several ? [String(row.poolSize), String(row.ioThreads)] : []),
        withRange(row.callsPerSecond),
        row.ratio ? withRange(row.ratio) : '1',
        figure(row.p50.median),
        figure(row.p99.median),
        cpu(row.clientCpuMicros.median),
        cpu(row.redisCpuMicros.median),
        cpu(row.redisMainCpuMicros.median),
      ]
    }),
  }
}

/** The result in sentences. */
export function conclusionsOf(results: readonly LinkResult[], asDocumented: boolean): string[] {
  const lines = results.flatMap((result) => [
    ...(asDocumented ? pipelineConclusion(result) : []),
    ...settingConclusions(result),
  ])
  if (results.some(({ rows }) => rows.some(({ calls }) => calls < CALLS_FOR_CPU))) {
    lines.push(
      `No CPU time is shown for fewer than ${CALLS_FOR_CPU} calls: Redis's own clock work would be the most of it.`,
    )
  }
  return lines
}

function pipelineConclusion(result: LinkResult): string[] {
  const compared = pair(result)
  if (!compared?.pipeline.ratio) return []
  const { pipeline, documents } = compared
  const theirs = (documents.pipeline / documents.sequential).toFixed(1)
  const ours = inRounds(compared.pipeline.ratio)
  const text = `${result.plan.name}: ${ours} times as many calls in a ${pipeline.strategy}; the documents: ${theirs}.`
  return [styleText('bold', text)]
}

/** Whether another number of connections or threads did better than the first. */
function settingConclusions({ plan, rows }: LinkResult): string[] {
  if (!severalSettings(rows)) return []
  return [...Map.groupBy(rows, ({ strategy }) => strategy)].map(([strategy, own]) => {
    const best = own.reduce((a, b) => (b.callsPerSecond.median > a.callsPerSecond.median ? b : a))
    const setting = `pool of ${best.poolSize}, I/O threads: ${best.ioThreads}`
    const gain = best.ratio ? `${inRounds(best.ratio)} times the first row` : 'the first row'
    return styleText('bold', `${plan.name}, ${strategy}: the most calls with ${setting}: ${gain}.`)
  })
}

function inRounds({ median, min, max }: Summary): string {
  const range = min === max ? '' : ` (${figure(min)} to ${figure(max)} round by round)`
  return `${figure(median)}${range}`
}

function severalSettings(rows: readonly StoreRow[]): boolean {
  return new Set(rows.map(({ poolSize, ioThreads }) => `${poolSize} ${ioThreads}`)).size > 1
}
