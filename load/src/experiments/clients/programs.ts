import { join } from 'node:path'
import { endOf, launch } from '@onetrip/stack/program.ts'
import { cpuDuring, microsPer } from '../../drivers/redis/cost.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { cpuBetween, readCpu } from '../../drivers/redis/threads.ts'
import { removeGlideSockets } from '../../variants.ts'
import { builds, folder, type Runtime } from './builds.ts'
import type { Plan } from './plan.ts'

/** The file or folder of `load/clients` that runs a client. */
const files = {
  batch: 'onetrip.ts',
  'pipeline-framed': 'onetrip.ts',
  ioredis: 'ioredis.ts',
  'ioredis-auto': 'ioredis.ts',
  'node-redis': 'node-redis.ts',
  'node-redis-auto': 'node-redis.ts',
  iovalkey: 'ioredis.ts',
  glide: 'glide.ts',
  bun: 'bun.ts',
  'redis-rs': 'rust',
  rueidis: 'go',
  'go-redis': 'go',
  'go-redis-auto': 'go',
} as const

export type ClientName = keyof typeof files

export const clientNames = Object.keys(files) as ClientName[]

/** What the client needs besides Node; null for nothing. */
export function runtimeOf(name: ClientName): Runtime | null {
  const file = files[name].replace('.ts', '')
  return file in builds ? (file as Runtime) : null
}

function programOf(client: ClientName): string[] {
  const runtime = runtimeOf(client)
  const isScript = files[client].endsWith('.ts')
  return [
    runtime === null ? process.execPath : builds[runtime].program,
    ...(isScript ? [join(folder, files[client])] : []),
    client,
  ]
}

/**
 * Measures a client in a process of its own.
 *
 * @returns figures, and the number of all views that the client recorded, with those of the warm-up.
 * @throws ProgramError when the program fails or is ended by `signal`; the reason of `signal`.
 */
export async function measureClient(
  server: RedisServer,
  { client, plan, signal }: { client: ClientName; plan: Plan; signal: AbortSignal },
) {
  signal.throwIfAborted()
  const [command = '', ...args] = programOf(client)
  let reply = Promise.withResolvers<Record<string, number>>()
  const running = launch({
    name: `the client ${client}`,
    command,
    args,
    input: true,
    onLine: (line) => line.startsWith('{') && reply.resolve(JSON.parse(line)),
  })
  const lost = endOf(running).then((error) => Promise.reject(error))
  lost.catch(() => {}) // also ends after `stop`
  const ask = async (line: unknown) => {
    reply = Promise.withResolvers()
    running.write(JSON.stringify(line))
    return await Promise.race([reply.promise, lost])
  }
  const stop = () => running.stop(1_000)
  signal.addEventListener('abort', stop)
  try {
    const { views: warmUp = 0 } = await ask(plan)
    const before = await readCpu(running.pid)
    const { result, cpu } = await cpuDuring(server, () => ask('measure'))
    const own = cpuBetween(before, await readCpu(running.pid))
    const { views = 0 } = result
    const { p50 = 0, p99 = 0 } = await ask('report')
    const rate = { viewsPerSecond: views / cpu.seconds, p50, p99 }
    const clientCpuMicros = microsPer(own, views).cpuMicros
    const { cpuMicros } = microsPer(cpu, views)
    return { total: warmUp + views, values: { ...rate, clientCpuMicros, cpuMicros } }
  } finally {
    signal.removeEventListener('abort', stop)
    await stop()
    removeGlideSockets(running.pid)
  }
}
