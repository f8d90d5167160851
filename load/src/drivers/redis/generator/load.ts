import { Problem } from '@onetrip/stack/problem.ts'
import { describeExit, launch, startProgram } from '@onetrip/stack/program.ts'
import { generatorProgram } from './program.ts'

export interface LoadOptions {
  /** A Redis on this machine. */
  target: { socket: string } | { port: number }
  /**
   * `short`: a new connection for each request. `spread`: the same, but see `rate`. `long`: one request after the other on each connection. `discard`:
   * like `long`, but TCP only, and replies of 4 kB or more are not read. Their bytes are counted, and all replies to
   * a request must have the same length.
   */
  mode: 'short' | 'spread' | 'long' | 'discard'
  /** Concurrent connections. */
  connections: number
  end: { seconds?: number; replies?: number }
  /**
   * The arguments of a command. `{key}` becomes one of `keys` random keys (`key:000000000000` …), `{value:64}` a value
   * of 64 bytes. Several commands are separated by `;` and take turns.
   */
  command: readonly string[]
  /** Default: 1. */
  keys?: number
  /** Commands per request. Default: 1. */
  pipeline?: number
  /**
   * Commands per second of all connections together. Long connections send theirs one after the other; short
   * connections are all opened at the same time, with `spread` only the first ones. Latency is then measured from when each command is due. Default: no
   * limit.
   */
  rate?: number
  /** Ends the run early. */
  signal: AbortSignal
}

/** The output of the generator, see `result.h`. */
export interface Load {
  seconds: number
  /** Complete replies, including error replies. */
  completed: number
  /**
   * By step and code, such as `connect EADDRNOTAVAIL` (the request is repeated), `error reply`, or `reply of another
   * length` (mode `discard` only).
   */
  errors: Record<string, number>
  /**
   * Latency of requests in milliseconds, including the time to connect for short connections. `below1` and `above2`
   * are the shares below 1 ms and above 2 ms, 0 to 1.
   */
  latency: Record<'p50' | 'p90' | 'p99' | 'max' | 'below1' | 'above2', number>
  /** Seconds from the start until the p99 of the replies of each tenth of a second stayed below 5 ms. */
  slowUntil: number
  /** Share of the time in which the generator ran or was ready to run, 0 to 1. At 1 it limits the rate. */
  demand: number
}

const addressOf = (target: LoadOptions['target']) =>
  'socket' in target ? target.socket : `127.0.0.1:${target.port}`

/** Runs the generator. @throws Problem when it cannot be compiled, or when it fails. */
export async function generateLoad(options: LoadOptions): Promise<Load> {
  const { target, mode, connections, end, command, signal } = options
  const { keys = 1, rate = 0, pipeline = 1 } = options
  const { seconds = 0, replies = 0 } = end
  const settings = [connections, seconds, replies, rate, keys, pipeline]
  const { lastLines, exited, ...running } = launch({
    name: 'the load generator',
    command: await generatorProgram(signal),
    args: [mode, addressOf(target), ...settings, ...command].map(String),
  })
  const stop = () => running.signal('SIGINT')
  signal.addEventListener('abort', stop)
  const exit = await exited
  signal.removeEventListener('abort', stop)
  const result = lastLines.findLast((line) => line.startsWith('{'))
  if (result !== undefined) return JSON.parse(result)
  throw new Problem(`The load generator failed (${describeExit(exit)}):\n${lastLines.join('\n')}`)
}

/**
 * Opens idle connections and keeps them open. Each sends one command, so that Redis has accepted it.
 *
 * @throws ProgramError when Redis does not accept all of them; the reason of `signal`.
 */
export async function holdConnections(
  target: LoadOptions['target'],
  count: number,
  signal: AbortSignal,
  command = ['PING'],
) {
  return await startProgram({
    name: `the holder of ${count} idle connections`,
    command: await generatorProgram(signal),
    args: ['hold', addressOf(target), String(count), '0', '0', '0', '1', '1', ...command],
    ready: /^holding/,
    readyTimeoutMs: 120_000,
    signal,
  })
}
