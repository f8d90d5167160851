import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { InvalidArgumentError } from 'commander'
import {
  type BuildName,
  isServerBuild,
  refusalOf,
  type ServerBuild,
  serverBuilds,
} from '../../server-build/src/builds.ts'
import { isForUser } from '../../server-build/src/errors.ts'
import { findBuild } from '../../server-build/src/find.ts'
import { homeOf } from '../../server-build/src/home.ts'
import type { InstalledBuild } from '../../server-build/src/installed.ts'
import { selectionFrom } from '../../server-build/src/sources/select.ts'
import { serverCommand, usualIoThreads } from '../../server-build/src/start-redis.ts'
import { Problem } from './problem.ts'
import { launch, type Program, startProgram } from './program.ts'

/** The command line of `apps/server-build`. */
const redisCli = fileURLToPath(new URL('../../server-build/src/cli.ts', import.meta.url))

export const redisBuilds = serverBuilds
export type RedisBuild = ServerBuild

/** Parses the name of a build, for commander. */
export function redisBuild(name: string): RedisBuild {
  if (isServerBuild(name)) return name
  throw new InvalidArgumentError(refusalOf(redisBuilds))
}

/**
 * Checks `REDIS_IO_THREADS`, before a build takes minutes.
 *
 * @throws Problem if it is invalid; the reason of `signal`.
 */
export async function checkIoThreads(signal: AbortSignal): Promise<void> {
  await usualIoThreads({ env: process.env, signal }).catch(refuse)
}

/** Throws an error of `apps/server-build` as a Problem if its message suffices. */
function refuse(error: unknown): never {
  throw isForUser(error) ? new Problem(error.message, { cause: error }) : error
}

/**
 * Builds a Redis, or redis-cli and redis-benchmark (`tools`), if the build is missing or outdated. Shows the progress
 * to the user.
 *
 * @returns the folder with the programs.
 * @throws Problem if the build fails; the build has printed the reason. The reason of `signal`; no compiler is left
 *   running then.
 */
export async function buildRedis(build: BuildName, signal?: AbortSignal): Promise<string> {
  return join((await built(build, signal)).directory, 'bin')
}

/** A process of its own compiles, so that its compilers end even if this process is killed. */
async function built(build: BuildName, signal?: AbortSignal): Promise<InstalledBuild> {
  const { env } = process
  const find = () => findBuild(homeOf(env), build, selectionFrom(env), env)
  const found = await find().catch(() => undefined) // the build reports the error
  signal?.throwIfAborted()
  if (found) return found
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
  const made = code === 0 && (await find())
  if (made) return made
  throw new Problem(`Could not build Redis (${build}); see the error above.`)
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
 * Starts a Redis: the installed `REDIS_SERVER`, otherwise a build, which is made if it is missing. Waits until it accepts
 * connections.
 *
 * @throws Problem if it cannot be built or started; ProgramError if it exits before it is ready; the reason of `signal`.
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
  const settings = Object.entries(config).flatMap(([key, value]) => [`--${key}`, value])
  const job = {
    home: homeOf(process.env),
    env: process.env,
    progress: { note() {}, update() {} }, // callers print what they start
    signal: signal ?? new AbortController().signal,
  }
  const cluster = busPort !== undefined
  const run = {
    build,
    port,
    bind: '127.0.0.1',
    unixsocket: socket,
    dir: directory,
    secrets,
    cluster,
  }
  return await serverCommand(job, () => built(build, signal), run, settings).catch(refuse)
}
