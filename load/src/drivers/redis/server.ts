import { rm } from 'node:fs/promises'
import { unixUrl } from '@onetrip/stack/address.ts'
import { socketIn, temporaryRunFolder } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { endOf } from '@onetrip/stack/program.ts'
import { buildRedis, type RedisBuild, startRedis } from '@onetrip/stack/redis.ts'
import { type RedisFacts, redisFacts } from '@onetrip/stack/redis-info.ts'
import { type CpuReading, readCpu } from './threads.ts'

/** `config`: settings of redis.conf. Appending to a file is off, and one I/O thread the default. */
export interface RedisServerOptions {
  build: RedisBuild
  config?: Record<string, string>
}

/** A Redis that was started for an experiment and serves nobody else. */
export interface RedisServer {
  readonly build: RedisBuild
  readonly pid: number
  readonly socket: string
  readonly port: number
  /** `unix://…`, for what is not measured. */
  readonly url: string
  readonly facts: RedisFacts
  /** CPU time of its threads since its start. */
  cpu(): Promise<CpuReading>
  /** Does nothing when it was stopped already. */
  stop(): Promise<void>
}

// What is measured is the work for connections and commands, not the disk.
const MEASURED = { appendonly: 'no', save: '', 'io-threads': '1' }

// To look whether a build is there takes half a second, and an experiment may start ten of it.
const made = new Set<Build>()
type Build = RedisBuild | 'tools'

/**
 * Makes a build of Redis if it is missing.
 *
 * @throws Problem when it cannot be made, or when another Redis would be started in its place.
 */
export async function requireBuild(build: Build, signal: AbortSignal): Promise<void> {
  if (process.env.REDIS_SERVER) {
    throw new Problem('REDIS_SERVER is set, but this measures builds of ours: unset it.')
  }
  if (!made.has(build)) await buildRedis(build, signal)
  made.add(build)
}

/**
 * Makes a build of Redis if it is missing and starts it, in a folder that goes away with it.
 *
 * @param onLost is called with the reason when it ends although nobody stopped it.
 * @throws Problem, ProgramError; the reason of `signal`. Nothing is left behind then.
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
