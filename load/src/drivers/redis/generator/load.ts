import { Problem } from '@onetrip/stack/problem.ts'
import { describeExit, launch, startProgram } from '@onetrip/stack/program.ts'
import { generatorProgram } from './program.ts'

export interface LoadOptions {
  /** Where Redis listens: always on this machine. */
  target: { socket: string } | { port: number }
  /**
   * `short`: connect, one request, its reply, close. `long`: one request after the other. `discard`: likewise over
   * TCP, but replies from 4 kB on are not read: they must have the same length each time, and only their bytes
   * are counted.
   */
  mode: 'short' | 'long' | 'discard'
  /** At the same time. */
  connections: number
  end: { seconds?: number; replies?: number }
  /**
   * `{key}` as an argument stands for a random one of `keys` keys, `key:000000000000` and so on, `{value:64}` for
   * a value of 64 bytes. After `;` the next command follows; they take turns.
   */
  command: readonly string[]
  /** Default 1. */
  keys?: number
  /** Commands of a request, which are sent together. Default 1. */
  pipeline?: number
  /** Of long connections, commands per second in all; clocks start when each is due. Default: no limit. */
  rate?: number
  /** Ends it early. */
  signal: AbortSignal
}

/** What the generator prints, see `result.h`. */
export interface Load {
  seconds: number
  /** Replies read to their end, those with an error included. */
  completed: number
  /**
   * By step and code, such as `connect EADDRNOTAVAIL`, each tried again; `error reply` of Redis; of those that
   * were not read, `reply of another length`.
   */
  errors: Record<string, number>
  /**
   * Of requests, in milliseconds, with connecting if that is short; shares, 0 to 1, below 1 ms and above 2 ms.
   */
  latency: Record<'p50' | 'p99' | 'max' | 'below1' | 'above2', number>
  /** Share of the time, 0 to 1, in which the generator ran or was ready to: at 1 it is the limit. */
  demand: number
}

/** Runs the generator to its end. @throws Problem when it cannot be compiled or does not end well. */
export async function generateLoad(options: LoadOptions): Promise<Load> {
  const { target, mode, connections, end, command, signal } = options
  const { keys = 1, rate = 0, pipeline = 1 } = options
  const to = 'socket' in target ? target.socket : target.port
  const { seconds = 0, replies = 0 } = end
  const { lastLines, ...program } = launch({
    name: 'the load generator',
    command: await generatorProgram(signal),
    args: [mode, to, connections, seconds, replies, rate, keys, pipeline, ...command].map(String),
  })
  const stop = () => program.signal('SIGINT')
  signal.addEventListener('abort', stop)
  const exit = await program.exited
  signal.removeEventListener('abort', stop)
  const result = lastLines.findLast((line) => line.startsWith('{'))
  if (result !== undefined) return JSON.parse(result)
  throw new Problem(`The load generator failed (${describeExit(exit)}):\n${lastLines.join('\n')}`)
}

/**
 * Opens connections that only stay. Each has sent one PING, so Redis has accepted it.
 *
 * @throws ProgramError when Redis does not take all of them; the reason of `signal`.
 */
export async function holdConnections(socket: string, count: number, signal: AbortSignal) {
  return await startProgram({
    name: `the holder of ${count} idle connections`,
    command: await generatorProgram(signal),
    args: ['hold', socket, String(count), '0', '0', '0', '1', '1', 'PING'],
    ready: /^holding/,
    readyTimeoutMs: 120_000,
    signal,
  })
}
