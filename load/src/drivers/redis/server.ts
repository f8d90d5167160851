import { rm } from 'node:fs/promises'
import { unixUrl } from '@onetrip/stack/address.ts'
import { socketIn, temporaryRunFolder } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { endOf } from '@onetrip/stack/program.ts'
import { type RedisFacts, redisFacts } from '@onetrip/stack/redis-info.ts'
import { buildRedis, type RedisBuild, startRedis } from '@onetrip/stack/start-redis.ts'
import { type CpuReading, readCpu } from './threads.ts'

export interface RedisServerOptions {
  build: RedisBuild
  /** Settings of redis.conf. By default, persistence and I/O threads are off. */
  config?: Record<string, string>
}

/** A Redis server that an experiment started for itself. */
export interface RedisServer {
  readonly build: RedisBuild
  readonly pid: number
  readonly socket: string
  readonly port: number
  /** `unix://…` */
  readonly url: string
  readonly facts: RedisFacts
  /** CPU time of its threads since its start. */
  cpu(): Promise<CpuReading>
  /** Does nothing if it has been stopped already. */
  stop(): Promise<void>
}

// Experiments measure the work for connections and commands, not the disk.
const MEASURED = { appendonly: 'no', save: '', 'io-threads': '1' }

/**
 * Builds Redis if the build is missing.
 *
 * @throws Problem when the build fails, or when REDIS_SERVER is set.
 */
export async function requireBuild(
  build: RedisBuild | 'tools',
  signal: AbortSignal,
): Promise<void> {
  if (process.env.REDIS_SERVER) {
    throw new Problem(
      'REDIS_SERVER is set, but this experiment measures builds of this repository. Unset REDIS_SERVER.',
    )
  }
  await buildRedis(build, signal)
}

/**
 * Starts a build of Redis in a temporary folder. Builds it first if it is missing.
 *
 * @param onLost called with the reason if the server ends without `stop`.
 * @throws Problem, ProgramError; the reason of `signal`. No process or file remains after an error.
 */
export async function startRedisServer(
  { build, config }: RedisServerOptions,
  signal: AbortSignal,
  onLost: (reason: Error) => void,
): Promise<RedisServer> {
  await requireBuild(build, signal)
  await using undo = new AsyncDisposableStack()
  const directory = await temporaryRunFolder('redis-')
  undo.defer(() => rm(directory, { recursive: true, force: true }))
  const { path: socket, remove } = await socketIn(directory)
  undo.defer(remove)
  const [port = 0] = await freePorts(1)
  const all = { ...MEASURED, ...config }
  const program = await startRedis({ build, port, socket, directory, config: all, signal })
  undo.defer(async () => void (await program.stop()))
  const { pid } = program
  const url = unixUrl(socket)
  const facts = await redisFacts(url)
  const end = undo.move()
  void program.exited.then(async () => {
    if (!end.disposed) onLost(await endOf(program))
  })
  const stop = () => end.disposeAsync()
  return { build, pid, socket, port, url, facts, cpu: () => readCpu(pid), stop }
}
