import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { repository } from '@onetrip/stack/places.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { endOf, launch } from '@onetrip/stack/program.ts'
import { cpuDuring, microsPer } from '../../drivers/redis/cost.ts'
import { programsFolder } from '../../drivers/redis/generator/program.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { cpuBetween, readCpu } from '../../drivers/redis/threads.ts'
import { removeGlideSockets } from '../../variants.ts'
import type { Plan } from './plan.ts'

const folder = join(repository, 'load/clients')
export const goFolder = join(folder, 'go')

/** The file of `load/clients` that runs a client; the folder `go` runs several. */
const files = {
  batch: 'onetrip.ts',
  'pipeline-framed': 'onetrip.ts',
  ioredis: 'ioredis.ts',
  'ioredis-auto': 'ioredis.ts',
  'node-redis': 'node-redis.ts',
  'node-redis-auto': 'node-redis.ts',
  glide: 'glide.ts',
  rueidis: 'go',
  'go-redis': 'go',
  'go-redis-auto': 'go',
} as const

export type ClientName = keyof typeof files

export const clientNames = Object.keys(files) as ClientName[]
export const isGo = (name: ClientName): boolean => files[name] === 'go'

const goProgram = () => join(programsFolder(), 'go-clients')

/**
 * Builds the Go clients.
 *
 * @returns the versions of Go and the clients; null if Go is not installed.
 * @throws Problem when the build fails; the reason of `signal`.
 */
export async function buildGo(signal: AbortSignal): Promise<string | null> {
  await mkdir(programsFolder(), { recursive: true })
  const go = async (...args: string[]) =>
    (await promisify(execFile)('go', args, { cwd: goFolder, signal })).stdout
  try {
    await go('build', '-buildvcs=false', '-o', goProgram(), '.')
    const facts = await go('version', '-m', goProgram())
    const versions = facts.matchAll(/(go1\S+)$|redis\/((?:rueidis|go-redis)\S*\s+v\S+)/gm)
    return [...versions].map(([, ...found]) => found.join('').replace('\t', ' ')).join(', ')
  } catch (cause) {
    signal.throwIfAborted()
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null
    const help = 'Leave them out with --clients, or check the access to their modules.'
    throw new Problem(`The Go clients could not be built. ${help}\n${messageOf(cause)}`, { cause })
  }
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
  const node = [process.execPath, join(folder, files[client])]
  const [command = '', ...args] = [...(isGo(client) ? [goProgram()] : node), client]
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
