import { figure } from '../../http/report.ts'
import { Problem } from '../../problem.ts'
import type { Transport } from '../../stack/address.ts'
import type { RedisBuild } from '../../stack/redis.ts'
import { pairwiseRatios, summarize } from '../../statistics.ts'
import { shortConnectionFigures } from '../documents.ts'
import type { Context, Findings, Server } from '../experiment.ts'
import { requireConnections } from '../limits.ts'
import {
  type Benchmark,
  findRedisBenchmark,
  GENERATOR_LIMIT,
  redisBenchmark,
} from '../redis-benchmark.ts'
import { withRange } from '../report.ts'
import { interleave, samplesOf } from '../rounds.ts'
import { type CpuUse, cpuBetween } from '../threads.ts'

export const shapes = ['get-8000', 'ping-10000', 'ping-10000-kept'] as const
export type Shape = (typeof shapes)[number]

interface ShapeOptions {
  shape: Shape
  builds: RedisBuild[]
  transports: Transport[]
  rounds: number
  ioThreads: number[]
  /** Default: as the documents. */
  requests?: number
}

/** As the documents called redis-benchmark. */
const given: Record<Shape, { clients: number; requests: number; test: string; keep: '0' | '1' }> = {
  'get-8000': { clients: 8_000, requests: 100_000, test: 'get', keep: '0' },
  'ping-10000': { clients: 10_000, requests: 500_000, test: 'ping_mbulk', keep: '0' },
  'ping-10000-kept': { clients: 10_000, requests: 500_000, test: 'ping_mbulk', keep: '1' },
}

interface ShapeRun {
  benchmark: Benchmark
  mainCpuMicros: number
  cpu: CpuUse
}

/** Runs redis-benchmark exactly as the documents did, on each build in turn. */
export async function runShapes(context: Context, options: ShapeOptions): Promise<Findings> {
  const { shape, builds, transports, rounds, ioThreads } = options
  const { clients, test, keep, ...defaults } = given[shape]
  const requests = options.requests ?? defaults.requests
  await requireConnections(clients)
  const program = await findRedisBenchmark(context.signal)
  if (!program) throw new Problem('There is no redis-benchmark beside the builds of Redis.')
  const servers: { server: Server; threads: number }[] = []
  for (const build of builds) {
    for (const threads of ioThreads) {
      const config = { 'io-threads': String(threads), maxclients: String(clients + 100) }
      servers.push({ server: await context.startRedis({ build, config }), threads })
    }
  }
  const variants = servers.flatMap((one) => transports.map((transport) => ({ ...one, transport })))
  const label = ({ server, threads, transport }: (typeof variants)[number]) =>
    `${transport === 'tcp' ? 'TCP ' : 'Unix'}  ${threads} thread${threads === 1 ? ' ' : 's'}  ${server.build}`
  const taken = await interleave(context, {
    variants,
    rounds,
    label,
    async measure({ server, transport }): Promise<ShapeRun> {
      const where = transport === 'tcp' ? ['-p', String(server.port)] : ['-s', server.socket]
      const before = await server.cpu()
      const benchmark = await redisBenchmark({
        program,
        args: [...where, '-k', keep, '-t', test, '-n', String(requests), '-c', String(clients)],
        signal: context.signal,
      })
      const cpu = cpuBetween(before, await server.cpu())
      return { benchmark, cpu, mainCpuMicros: (cpu.mainCpuSeconds * 1e6) / requests }
    },
    describe: ({ benchmark, mainCpuMicros }) =>
      `${figure(benchmark.perSecond)} requests/s, ${figure(mainCpuMicros)} µs of the main thread`,
  })
  const atLimit = ({ benchmark, cpu }: ShapeRun) =>
    (benchmark.demand ?? 0) >= GENERATOR_LIMIT && cpu.mainDemand < GENERATOR_LIMIT
  const rows = variants.map((variant) => {
    const runs = samplesOf(taken, variant)
    const stock = variants.find(
      ({ server, threads, transport }) =>
        server.build === 'stock' && threads === variant.threads && transport === variant.transport,
    )
    const base = stock && stock !== variant ? samplesOf(taken, stock) : null
    const rates = (list: readonly ShapeRun[]) => list.map(({ benchmark }) => benchmark.perSecond)
    return [
      label(variant),
      `${runs.some(atLimit) ? '* ' : ''}${withRange(summarize(rates(runs)))}`,
      base ? withRange(summarize(pairwiseRatios(rates(runs), rates(base)))) : '1',
      withRange(summarize(runs.map(({ mainCpuMicros }) => mainCpuMicros))),
      figure(summarize(runs.map(({ benchmark }) => benchmark.max)).median),
    ]
  })
  const [first] = taken
  return {
    tables: [
      {
        title: first?.sample.benchmark.command.replace(/ (-p \d+|-s \S+)/, '') ?? shape,
        head: [
          'way, I/O threads, build',
          'requests/s\nmedian (range)',
          '× stock',
          'main thread\nCPU µs/request',
          'longest\nms',
        ],
        rows,
      },
    ],
    conclusions: taken.some(({ sample }) => atLimit(sample))
      ? ["* redis-benchmark was busy all the time, Redis was not: the rate is redis-benchmark's."]
      : [],
    documents: shortConnectionFigures,
    data: {
      shape,
      samples: taken.map(({ variant, round, sample }) => ({
        build: variant.server.build,
        ioThreads: variant.threads,
        transport: variant.transport,
        round,
        ...sample,
      })),
    },
  }
}
