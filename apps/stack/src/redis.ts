import { fileURLToPath } from 'node:url'
import { InvalidArgumentError } from 'commander'
import { Problem } from './problem.ts'
import { launch, type Program, startProgram } from './program.ts'

/** The command line of `apps/server-build`. */
const redisCli = fileURLToPath(new URL('../../server-build/src/cli.ts', import.meta.url))

export const redisBuilds = ['patched', 'stock', 'baseline'] as const
type Series = (typeof redisBuilds)[number]
/** A build, or one with the first patches of its series: `patched@0005` ends with patch 0005. */
export type RedisBuild = Series | `${Series}@${string}`

/** A parser for commander. */
export function redisBuild(name: string): RedisBuild {
  const series = redisBuilds.find((build) => build === name.replace(/@\d{4}$/, ''))
  if (series) return name as RedisBuild
  throw new InvalidArgumentError(
    `Allowed choices are ${redisBuilds.join(', ')}. patched@0005 is patched with its patches up to 0005.`,
  )
}

/**
 * Builds a Redis, or redis-cli and redis-benchmark (`tools`), if that has not happened yet. Its progress
 * goes straight to the user.
 *
 * @returns the folder with the programs.
 * @throws Problem when it fails; the build has printed why. The reason of `signal`, after which no
 *   compiler is left.
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
    showErrors: true, // progress is there
    killSignal: 'SIGTERM', // killed, it would leave its compilers
  })
  const stop = () => void program.stop()
  signal?.addEventListener('abort', stop)
  const { code } = await program.exited
  signal?.removeEventListener('abort', stop)
  signal?.throwIfAborted()
  if (code !== 0) throw new Problem(`Redis (${build}) could not be built; the reason is above.`)
  return program.lastLines.at(-1)?.slice(`${build}: `.length) ?? ''
}

export interface RedisOptions {
  /** Default `patched`. */
  build?: RedisBuild
  /** What it is called in messages. Default: Redis, and the build. */
  name?: string
  /** TCP port on loopback; 0, the default, listens on the Unix socket only. */
  port?: number
  /** Path of its Unix socket. Default: none, which needs a port. */
  socket?: string
  /** Where Redis keeps its files. */
  directory: string
  /**
   * Folder of the users' passwords, made where absent (see `withPasswordOf`). Default: no users, no
   * passwords.
   */
  secrets?: string | undefined
  /** As a node of a cluster, with this port for the cluster bus. */
  busPort?: number
  /** Further configuration, such as `{ appendfsync: 'always' }`. */
  config?: Record<string, string>
  /** Cancels the start. */
  signal?: AbortSignal
}

/**
 * Starts a Redis through the command line of `apps/server-build` and waits until it accepts
 * connections. The process is the server itself: its id is the server's, a signal reaches it.
 *
 * @throws ProgramError when it does not start.
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
    // The last line of the start. "connections unix" since Redis 7.2, "connections at <path>" before.
    ready:
      socket === undefined
        ? /ready to accept connections/i
        : /ready to accept connections (unix|at )/i,
    readyTimeoutMs: 30_000,
    signal,
  })
}
