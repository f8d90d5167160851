import type { Latency } from '../../drivers/redis/generator/load.ts'
import { GENERATOR_LIMIT } from '../../drivers/redis/redis-benchmark.ts'
import { pairwiseRatios, type Summary, summarize } from '../../statistics.ts'
import { figure, type TextTable, withRange } from '../../table.ts'

/** One run of one command. */
export interface ThreadsRun {
  commandsPerSecond: number
  /** Shares of all commands, 0 to 1, and percentiles in milliseconds. */
  latency: Latency
  /** Per command. */
  mainCpuMicros: number
  cpuMicros: number
  /** Shares of the time in which they wanted to run. */
  mainDemand: number
  generatorDemand: number
  replyErrors: number
  errors: Record<string, number>
}

/** One command with one setting of io-threads: medians with the range over the rounds. */
export interface ThreadsSummary {
  build: string
  command: string
  threads: number
  label: string
  commandsPerSecond: Summary
  /** Commands/s as a multiple of the first setting's, round by round; null for that itself. */
  ratio: Summary | null
  /** Shares of the commands, 0 to 1. */
  below1: number
  from1To2: number
  above2: number
  mainCpuMicros: Summary
  cpuMicros: Summary
  /** Commands/s at which the main thread would have no time left: a projection. */
  ceiling: number
  /** The same, as a multiple of the first setting's. */
  ceilingRatio: number | null
  generatorAtLimit: boolean
  failed: number
}

export function summarizeThreads(given: {
  build: string
  command: string
  threads: number
  label: string
  runs: readonly ThreadsRun[]
  /** Those with the first setting, in the same rounds. */
  base: readonly ThreadsRun[] | null
}): ThreadsSummary {
  const { runs, base, ...which } = given
  const over = (value: (run: ThreadsRun) => number) => summarize(runs.map(value))
  const rates = (list: readonly ThreadsRun[]) => list.map((run) => run.commandsPerSecond)
  const costs = (list: readonly ThreadsRun[]) => list.map((run) => run.mainCpuMicros)
  const mainCpuMicros = over((run) => run.mainCpuMicros)
  return {
    ...which,
    commandsPerSecond: summarize(rates(runs)),
    ratio: base ? summarize(pairwiseRatios(rates(runs), rates(base))) : null,
    below1: over(({ latency }) => latency.below1).median,
    from1To2: over(({ latency }) => latency.from1To2).median,
    above2: over(({ latency }) => latency.above2).median,
    mainCpuMicros,
    cpuMicros: over((run) => run.cpuMicros),
    ceiling: 1e6 / mainCpuMicros.median,
    ceilingRatio: base ? summarize(pairwiseRatios(costs(base), costs(runs))).median : null,
    generatorAtLimit: runs.some(
      (run) => run.generatorDemand >= GENERATOR_LIMIT && run.mainDemand < GENERATOR_LIMIT,
    ),
    failed: runs.reduce(
      (sum, run) => sum + run.replyErrors + Object.values(run.errors).reduce((a, b) => a + b, 0),
      0,
    ),
  }
}

/** Four threads against one, from the documents' table 3.1. */
const documented: Record<string, number> = {
  SET: 210_300 / 85_200,
  GET: 215_800 / 87_500,
  'MGET of 10': 68_700 / 42_100,
  LPUSH: 195_400 / 78_900,
}

export function ioThreadsTable(
  summaries: readonly ThreadsSummary[],
  { connections, rate, first }: { connections: number; rate: number | undefined; first: number },
): TextTable {
  const reference = `× with\n${first}`
  return {
    title:
      `${connections} long connections over TCP, one command at a time each` +
      (rate === undefined ? '' : `, ${figure(rate)} commands/s in all`),
    head: [
      'command\nI/O threads',
      'commands/s\nmedian (range)',
      reference,
      'docs\n1 to 4',
      '% below 1, 1-2,\nover 2 ms',
      'main thread\nCPU µs/command',
      'all threads\nµs/command',
      'ceiling\ncommands/s',
    ],
    rows: summaries.map((row) => [
      row.label,
      `${row.generatorAtLimit ? '* ' : ''}${withRange(row.commandsPerSecond)}`,
      row.ratio ? figure(row.ratio.median) : '1',
      row.threads === 4 ? `× ${figure(documented[row.command] ?? Number.NaN)}` : '',
      [row.below1, row.from1To2, row.above2].map((share) => (share * 100).toFixed(1)).join(' / '),
      withRange(row.mainCpuMicros),
      figure(row.cpuMicros.median),
      figure(row.ceiling),
    ]),
  }
}

export function ioThreadsConclusions(
  summaries: readonly ThreadsSummary[],
  { cores, rate }: { cores: number; rate: number | undefined },
): string[] {
  const bound =
    rate === undefined
      ? 'Where cores are short, the main thread finds more commands waiting each time it runs, which makes each cheaper; between distant cores every hand-over is dearer. Take it as an upper bound.'
      : 'At a fixed rate the main thread finds few commands each time it runs, which makes each dearer than under full load. Take it as a lower bound.'
  const lines = [
    `The ceiling is a projection: what the main thread could do if it never waited for a core or for its I/O threads. To reach it, a machine needs a core for each thread of Redis and as many for the load as it takes; this one has ${cores}. ${bound}`,
  ]
  if (summaries.some(({ threads }) => threads > cores)) {
    lines.push(
      `! More threads than this machine has cores (${cores}), beside the load: the rate shows what crowding costs, not what the threads are worth.`,
    )
  } else if (summaries.some(({ threads }) => threads + 1 > cores)) {
    lines.push(
      `Redis with ${cores} threads and the load share ${cores} cores: compare ceilings, not rates.`,
    )
  }
  if (summaries.some(({ generatorAtLimit }) => generatorAtLimit)) {
    lines.push("* The generator was busy all the time, Redis was not: the rate is the generator's.")
  }
  for (const { label, failed } of summaries.filter((row) => row.failed > 0)) {
    lines.push(`${label.trim()}: ${failed} commands failed.`)
  }
  return lines
}
