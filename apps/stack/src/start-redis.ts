import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { InvalidArgumentError } from 'commander'
import { isServerBuild, type ServerBuild, serverBuilds } from '../../server-build/src/builds.ts'
import { RedisBuildError } from '../../server-build/src/errors.ts'
import { findBuild } from '../../server-build/src/find.ts'
import { homeOf } from '../../server-build/src/home.ts'
import { selectionFrom } from '../../server-build/src/sources/select.ts'
import { serverCommand } from '../../server-build/src/start-redis.ts'
import { Problem } from './problem.ts'
import { launch, type Program, startProgram } from './program.ts'

/** The command line of `apps/server-build`. */
const redisCli = fileURLToPath(new URL('../../server-build/src/cli.ts', import.meta.url))

const ioThreadsRule = fileURLToPath(
  new URL('../../server-build/container/io-threads.sh', import.meta.url),
)

export const redisBuilds = serverBuilds
export type RedisBuild = ServerBuild

/** Parses the name of a build, for commander. */
export function redisBuild(name: string): RedisBuild {
  if (isServerBuild(name)) return name
  throw new InvalidArgumentError(
    `Allowed choices are ${redisBuilds.join(', ')}. patched@0005 has the patches of patched up to 0005.`,
  )
}

/**
 * Checks `REDIS_IO_THREADS`, before a build takes minutes.
 *
 * @throws Problem if it is invalid.
 */
export function checkIoThreads(): void {
  const { status, stderr } = spawnSync('/bin/sh', [ioThreadsRule], { encoding: 'utf8' })
  if (status !== 0) throw new Problem(stderr.trim())
}

/**
 * Builds a Redis, or redis-cli and redis-benchmark (`tools`), if the build is missing or outdated. Shows the progress
 * to the user.
 *
 * @returns the folder with the programs.
 * @throws Problem if the build fails; the build has printed the reason. The reason of `signal`; no compiler is left
 *   running then.
 */
export async function buildRedis(
  build: RedisBuild | 'tools',
  signal?: AbortSignal,
): Promise<string> {
  signal?.throwIfAborted()
  const { env } = process
  const found = await findBuild(homeOf(env), build, selectionFrom(env), env).catch(() => undefined)
  if (found) return join(found.directory, 'bin')
  const program = launch({
    name: 'the build of Redis',
    command: process.execPath,
    args: [redisCli, 'build', build],
    showErrors: true, // the progress
    killSignal: 'SIGTERM', // SIGKILL would leave its compilers running
  })
  const stop = () => void program.stop()
  signal?.addEventListener('abort', stop)
  const { code } = await program.exited
  signal?.removeEventListener('abort', stop)
  signal?.throwIfAborted()
  if (code !== 0) throw new Problem(`Could not build Redis (${build}); see the error above.`)
  return program.lastLines.at(-1)?.slice(`${build}: `.length) ?? ''
}

export interface RedisOptions {
  /** Default `patched`. */
  build?: RedisBuild
  /** Name in messages. Default: `Redis (<build>)`. */
  name?: string
  /** TCP port on loopback. Default 0: Unix socket only. */
  port?: number
  /** Path of the Unix socket. Default: none; then `port` is required. */
  socket?: string
  /** Data directory. */
  directory: string
  /** Folder of the users' passwords; missing ones are generated (see `credentialsOf`). Default: no users. */
  secrets?: string | undefined
  /** Starts a node of a cluster, with this port for the cluster bus. */
  busPort?: number
  /** Further configuration, such as `{ appendfsync: 'always' }`. */
  config?: Record<string, string>
  /** Cancels the start. */
  signal?: AbortSignal
}

/**
 * Starts a Redis, of `apps/server-build` or the installed `REDIS_SERVER`, and waits until it accepts connections.
 *
 * @throws Problem if it cannot be started; ProgramError if it exits before it is ready.
 */
export async function startRedis(options: RedisOptions): Promise<Program> {
  const { build = 'patched', socket, signal } = options
  const { program, args } = await commandFor(build, options)
  return await startProgram({
    name: options.name ?? `Redis (${process.env.REDIS_SERVER || build})`,
    command: program,
    args,
    // The last line that Redis logs at its start: "connections unix" since 7.2, "connections at <path>" before.
    ready:
      socket === undefined
        ? /ready to accept connections/i
        : /ready to accept connections (unix|at )/i,
    readyTimeoutMs: 30_000,
    signal,
  })
}

async function commandFor(build: RedisBuild, options: RedisOptions) {
  const { port = 0, socket, directory, secrets, busPort, signal } = options
  const config = { ...(busPort && { 'cluster-port': String(busPort) }), ...options.config }
  const job = {
    home: homeOf(process.env),
    env: process.env,
    progress: { note() {}, update() {} },
    signal: signal ?? new AbortController().signal,
  }
  const run = {
    port,
    bind: '127.0.0.1',
    dir: directory,
    ...(socket !== undefined && { unixsocket: socket }),
    ...(secrets !== undefined && { secrets }),
    cluster: busPort !== undefined,
  }
  const settings = Object.entries(config).flatMap(([key, value]) => [`--${key}`, value])
  try {
    return await serverCommand(job, build, run, settings)
  } catch (error) {
    if (error instanceof RedisBuildError || (error instanceof Error && 'syscall' in error)) {
      throw new Problem(error.message, { cause: error })
    }
    throw error
  }
}
