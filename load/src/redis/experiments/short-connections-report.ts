import type { RedisBuild } from '@onetrip/stack/redis.ts'
import { GENERATOR_LIMIT } from '../../drivers/redis/redis-benchmark.ts'
import type { SystemCalls } from '../../drivers/redis/system-calls.ts'
import { pairwiseRatios, type Summary, summarize } from '../../statistics.ts'
import { errorKinds, figure, type TextTable, withRange } from '../../table.ts'
import type { LongRun, ShortRun, Way } from './short-connections-runs.ts'

/** All runs of one way: medians with the range over the rounds. */
export interface ShortSummary extends Way {
  label: string
  mainCpuMicros: Summary
  cpuMicros: Summary
  connectionsPerSecond: Summary
  /** Milliseconds. */
  p99: Summary
  /** Main-thread CPU as a multiple of stock's, round by round; null for stock itself. */
  ratio: Summary | null
  /** Of the main thread per connection. */
  systemCalls: number | null
  systemCallsByName: SystemCalls['byName']
  /** Whether the generator, and not Redis, limited the rate in any round. */
  generatorAtLimit: boolean
  errors: Record<string, number>
}

export function summarizeShort(given: {
  way: Way
  label: string
  runs: readonly ShortRun[]
  /** Those of stock, in the same rounds. */
  base: readonly ShortRun[] | null
  calls: { perConnection: number; byName: SystemCalls['byName'] } | null
}): ShortSummary {
  const { way, label, runs, base, calls } = given
  const over = (value: (run: ShortRun) => number) => summarize(runs.map(value))
  const cpu = (list: readonly ShortRun[]) => list.map((run) => run.mainCpuMicros)
  const errors: Record<string, number> = {}
  for (const run of runs) {
    const failed = run.replyErrors > 0 ? { ...run.errors, reply: run.replyErrors } : run.errors
    for (const [kind, count] of Object.entries(failed)) errors[kind] = (errors[kind] ?? 0) + count
  }
  return {
    ...way,
    label,
    mainCpuMicros: over((run) => run.mainCpuMicros),
    cpuMicros: over((run) => run.cpuMicros),
    connectionsPerSecond: over((run) => run.connectionsPerSecond),
    p99: over((run) => run.latency.p99),
    ratio: base ? summarize(pairwiseRatios(cpu(runs), cpu(base))) : null,
    systemCalls: calls?.perConnection ?? null,
    systemCallsByName: calls?.byName ?? null,
    generatorAtLimit: runs.some(limitedByGenerator),
    errors,
  }
}

/** The generator never rested, and the server's main thread did. */
function limitedByGenerator({ generator, mainDemand }: ShortRun): boolean {
  return generator.demand >= GENERATOR_LIMIT && mainDemand < GENERATOR_LIMIT
}

export function shortTable(summaries: readonly ShortSummary[], connections: number): TextTable {
  const failed = summaries.some(({ errors }) => Object.keys(errors).length > 0)
  return {
    title: `Short connections, ${connections} at a time: connect, GET, read the reply, close`,
    head: [
      'way, beside, build',
      'main thread\nCPU µs/conn.\nmedian (range)',
      '× stock\n(range)',
      'all threads\nCPU µs\n/conn.',
      'system\ncalls\n/conn.',
      'connections/s\nmedian (range)',
      'p99\nms',
      ...(failed ? ['errors'] : []),
    ],
    rows: summaries.map((row) => [
      row.label,
      withRange(row.mainCpuMicros),
      row.ratio ? withRange(row.ratio) : row.build === 'stock' ? '1' : '-',
      figure(row.cpuMicros.median),
      row.systemCalls === null ? '' : figure(row.systemCalls),
      `${row.generatorAtLimit ? '* ' : ''}${withRange(row.connectionsPerSecond)}`,
      figure(row.p99.median),
      ...(failed ? [errorKinds(row.errors).replaceAll(', ', '\n')] : []),
    ]),
  }
}

export function longTable(
  runs: readonly ({ build: string; beside: boolean } & LongRun)[],
  builds: readonly RedisBuild[],
  connections: { long: number; short: number },
): TextTable {
  const rows = [false, true].flatMap((beside) =>
    builds.map((build) => {
      const own = runs.filter((run) => run.build === build && run.beside === beside)
      const cpu = own.flatMap(({ mainCpuMicros }) => mainCpuMicros ?? [])
      return [
        `${beside ? `beside ${connections.short} short` : 'alone'}  ${build}`,
        withRange(summarize(own.map((run) => run.commandsPerSecond))),
        withRange(summarize(own.map((run) => run.latency.p50))),
        withRange(summarize(own.map((run) => run.latency.p99))),
        cpu.length > 0 ? withRange(summarize(cpu)) : '',
      ]
    }),
  )
  return {
    title: `${connections.long} long connections, one GET after the other`,
    head: ['', 'commands/s\nmedian (range)', 'p50 ms', 'p99 ms', 'main thread\nCPU µs/command'],
    rows,
  }
}

export function shortConclusions(summaries: readonly ShortSummary[]): string[] {
  const lines = summaries.flatMap(({ build, ratio, label, systemCalls }) => {
    if (build !== 'patched' || !ratio) return []
    const calls = systemCalls === null ? '' : `, ${figure(systemCalls)} system calls`
    const where = label.replace(/\s+patched$/, '').replaceAll(/\s+/g, ' ')
    return [
      `${where}: patched needs ${figure(ratio.median)} times the main-thread CPU of stock${calls}.`,
    ]
  })
  if (summaries.some(({ generatorAtLimit }) => generatorAtLimit)) {
    lines.push("* The generator was busy all the time, Redis was not: the rate is the generator's.")
  }
  if (summaries.every(({ systemCalls }) => systemCalls === null)) {
    lines.push(
      'System calls were not counted: neither strace nor perf is here and may look at Redis.',
    )
  }
  return lines
}
