import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { repository } from '@onetrip/stack/places.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { endOf, launch } from '@onetrip/stack/program.ts'
import type { Plan } from '../../../clients/support/run.ts'
import { cpuDuring, microsPer } from '../../drivers/redis/cost.ts'
import { programsFolder } from '../../drivers/redis/generator/program.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { cpuBetween, readCpu } from '../../drivers/redis/threads.ts'
import { removeGlideSockets } from '../../variants.ts'

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

/** The version of Go; null if Go is not installed. */
export async function goVersion(): Promise<string | null> {
  try {
    return (await promisify(execFile)('go', ['env', 'GOVERSION'])).stdout.trim()
  } catch {
    return null
  }
}

const goProgram = () => join(programsFolder(), 'go-clients')

/** Builds the Go clients, and returns their versions. @throws Problem when that fails; the reason of `signal`. */
export async function buildGo(signal: AbortSignal): Promise<string> {
  await mkdir(programsFolder(), { recursive: true })
  const args = ['build', '-buildvcs=false', '-o', goProgram(), '.']
  await promisify(execFile)('go', args, { cwd: goFolder, signal }).catch((cause) => {
    signal.throwIfAborted()
    const help = 'Leave them out with --clients, or check the access to their modules.'
    throw new Problem(`The Go clients could not be built. ${help}\n${messageOf(cause)}`, { cause })
  })
  const required = readFileSync(join(goFolder, 'go.mod'), 'utf8')
  const modules = required.matchAll(/^\tgithub\.com\/redis\/([\w-]+)\S* v(\S+)$/gm)
  return [...modules].map(([, name, version]) => `${name} ${version}`).join(', ')
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
  const file = files[client]
  const program = isGo(client) ? [goProgram()] : [process.execPath, join(folder, file)]
  const [command = '', ...args] = [...program, client]
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
    const { cpuMicros } = microsPer(cpu, views)
    const clientCpuMicros = microsPer(own, views).cpuMicros
    return {
      total: warmUp + views,
      values: { viewsPerSecond: views / cpu.seconds, p50, p99, clientCpuMicros, cpuMicros },
    }
  } finally {
    signal.removeEventListener('abort', stop)
    await stop()
    removeGlideSockets(running.pid)
  }
}
