import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { InvalidArgumentError } from 'commander'
import { Problem } from './problem.ts'
import { launch, type Program, startProgram } from './program.ts'

/** The command line of `apps/server-build`. */
const redisCli = fileURLToPath(new URL('../../server-build/src/cli.ts', import.meta.url))

const ioThreadsRule = fileURLToPath(
  new URL('../../server-build/container/io-threads.sh', import.meta.url),
)

export const redisBuilds = ['patched', 'stock', 'baseline'] as const
type Series = (typeof redisBuilds)[number]
/** A build, or the build with only the first patches of its series: `patched@0005` ends with patch 0005. */
export type RedisBuild = Series | `${Series}@${string}`

/** Parses the name of a build, for commander. */
export function redisBuild(name: string): RedisBuild {
  const series = redisBuilds.find((build) => build === name.replace(/@\d{4}$/, ''))
  if (series) return name as RedisBuild
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
 * Starts a Redis with the command line of `apps/server-build` and waits until it accepts connections. The process
 * is the server itself: it has the server's pid and gets its signals.
 *
 * @throws ProgramError if it does not start.
 */
export async function startRedis(options: RedisOptions): Promise<Program> {
  const { build = 'patched', port = 0, socket, directory, secrets, busPort, signal } = options
  const config = { ...(busPort && { 'cluster-port': String(busPort) }), ...options.config }
  return await startProgram({
    // `run` prefers an installed server.
    name: options.name ?? `Redis (${process.env.REDIS_SERVER || build})`,
    command: process.execPath,
    args: [
      ...[redisCli, 'run', build, `--port=${port}`, `--dir=${directory}`],
      ...(socket === undefined ? [] : [`--unixsocket=${socket}`]),
      ...(secrets === undefined ? [] : [`--secrets=${secrets}`]),
      ...(busPort === undefined ? [] : ['--cluster']),
      ...['--', ...Object.entries(config).flatMap(([key, value]) => [`--${key}`, value])],
    ],
    // The last line that Redis logs at its start: "connections unix" since 7.2, "connections at <path>" before.
    ready:
      socket === undefined
        ? /ready to accept connections/i
        : /ready to accept connections (unix|at )/i,
    readyTimeoutMs: 30_000,
    signal,
  })
}
