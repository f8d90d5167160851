import type { RedisBuild } from '../../stack/redis.ts'
import { pairwiseRatios, summarize } from '../../statistics.ts'
import { figure, withRange } from '../../table.ts'
import { shortConnectionFigures } from '../documents.ts'
import type { Context, Findings, Server } from '../experiment.ts'
import { generateLoad } from '../generator/load.ts'
import { requireConnections } from '../limits.ts'
import { redisBenchmark, requireRedisBenchmark } from '../redis-benchmark.ts'
import { interleave, samplesOf } from '../rounds.ts'
import { cpuBetween } from '../threads.ts'

export const shapes = ['get-8000', 'ping-10000', 'ping-10000-kept'] as const
export type Shape = (typeof shapes)[number]

interface ShapeOptions {
  shape: Shape
  builds: RedisBuild[]
  rounds: number
  ioThreads: number[]
  /** Default: as the documents. */
  requests?: number
  /** Likewise. */
  clients?: number
}

interface Given {
  clients: number
  requests: number
  /** As redis-benchmark calls it. */
  test: string
  command: readonly string[]
  /** Whether the connections stay. */
  keep: boolean
}

/** As the documents called redis-benchmark. */
const given: Record<Shape, Given> = {
  'get-8000': {
    clients: 8_000,
    requests: 100_000,
    test: 'get',
    command: ['GET', 'key'],
    keep: false,
  },
  'ping-10000': {
    ...{ clients: 10_000, requests: 500_000, test: 'ping_mbulk' },
    ...{ command: ['PING'], keep: false },
  },
  'ping-10000-kept': {
    ...{ clients: 10_000, requests: 500_000, test: 'ping_mbulk' },
    ...{ command: ['PING'], keep: true },
  },
}

const tools = ['redis-benchmark', 'our generator'] as const
type Tool = (typeof tools)[number]

/** What either tool tells of a run. */
interface ToolRun {
  perSecond: number
  /** Milliseconds. */
  p50: number
  p99: number
  max: number
  errors: Record<string, number>
}

interface ShapeRun extends ToolRun {
  mainCpuMicros: number
  mainDemand: number
}

/**
 * Runs redis-benchmark exactly as the documents did, on each build in turn; and our generator, which
 * closes a connection without searching for it, in the same shape.
 */
export async function runShapes(context: Context, options: ShapeOptions): Promise<Findings> {
  const { shape, builds, rounds, ioThreads } = options
  const { test, keep } = given[shape]
  const { requests = given[shape].requests, clients = given[shape].clients } = options
  await requireConnections(clients)
  const program = await requireRedisBenchmark(context.signal)
  // A client closes and connects anew before Redis has noticed the former.
  const maxclients = String(2 * clients + 100)
  const servers: { server: Server; threads: number }[] = []
  for (const build of builds) {
    for (const threads of ioThreads) {
      const config = { 'io-threads': String(threads), maxclients }
      servers.push({ server: await context.startRedis({ build, config }), threads })
    }
  }
  const variants = tools.flatMap((tool) => servers.map((one) => ({ ...one, tool })))
  const label = ({ tool, threads, server }: (typeof variants)[number]) =>
    [
      tool.padEnd('redis-benchmark'.length),
      ...(ioThreads.length > 1 ? [`io-threads ${threads}`] : []),
      server.build,
    ].join('  ')
  const benchmarkArgs = ['-k', keep ? '1' : '0', '-t', test, '-n', requests, '-c', clients].map(
    String,
  )

  const runTool = async (tool: Tool, port: number): Promise<ToolRun> => {
    if (tool === 'redis-benchmark') {
      const args = ['-p', String(port), ...benchmarkArgs]
      const run = await redisBenchmark({ program, args, signal: context.signal })
      const { perSecond, p50, p99, max } = run
      return { perSecond, p50, p99, max, errors: {} }
    }
    const load = await generateLoad({
      target: { port },
      mode: keep ? 'long' : 'short',
      connections: clients,
      end: { replies: requests },
      command: given[shape].command,
      signal: context.signal,
    })
    const { p50, p99, max } = load.latency
    return { perSecond: load.completed / load.seconds, p50, p99, max, errors: load.errors }
  }

  const taken = await interleave(context, {
    variants,
    rounds,
    label,
    async measure({ server, tool }): Promise<ShapeRun> {
      const before = await server.cpu()
      const run = await runTool(tool, server.port)
      const { mainCpuSeconds, mainDemand } = cpuBetween(before, await server.cpu())
      return { ...run, mainDemand, mainCpuMicros: (mainCpuSeconds * 1e6) / requests }
    },
    describe: ({ perSecond, mainCpuMicros }) =>
      `${figure(perSecond)} requests/s, ${figure(mainCpuMicros)} µs of the main thread`,
  })
  const summaries = variants.map((variant) => {
    const { server, threads, tool } = variant
    const runs = samplesOf(taken, variant)
    const stock = variants.find(
      (other) => other.server.build === 'stock' && other.threads === threads && other.tool === tool,
    )
    const base = stock && stock !== variant ? samplesOf(taken, stock) : null
    const rates = (list: readonly ShapeRun[]) => list.map(({ perSecond }) => perSecond)
    return {
      tool,
      build: server.build,
      ioThreads: threads,
      label: label(variant),
      perSecond: summarize(rates(runs)),
      ratio: base ? summarize(pairwiseRatios(rates(runs), rates(base))) : null,
      mainCpuMicros: summarize(runs.map((run) => run.mainCpuMicros)),
      max: summarize(runs.map((run) => run.max)),
      restedMostly: runs.some(restedMostly),
    }
  })
  return {
    tables: [
      {
        title: `redis-benchmark ${benchmarkArgs.join(' ')}, and the same shape by our generator`,
        head: [
          'tool, build',
          'requests/s\nmedian (range)',
          '× stock\n(range)',
          'main thread\nCPU µs/request',
          'longest\nms',
        ],
        rows: summaries.map((row) => [
          row.label,
          `${row.restedMostly ? '* ' : ''}${withRange(row.perSecond)}`,
          row.ratio ? withRange(row.ratio) : row.build === 'stock' ? '1' : '-',
          withRange(row.mainCpuMicros),
          figure(row.max.median),
        ]),
      },
    ],
    conclusions: summaries.some((row) => row.restedMostly)
      ? [
          "* Redis's main thread rested most of the time: the rate is that of the tool, of its search for a free port, or of SYNs sent again because Redis's backlog was full. Compare CPU times.",
        ]
      : [],
    documents: shortConnectionFigures,
    data: {
      shape,
      summaries,
      samples: taken.map(({ variant: { server, threads, tool }, round, sample }) => ({
        ...{ tool, build: server.build, ioThreads: threads, round },
        ...sample,
      })),
    },
  }
}

/** A tool that waits as much as it works is the limit without being busy itself. */
const restedMostly = ({ mainDemand }: ShapeRun) => mainDemand < 0.5
