import { getSystemErrorName } from 'node:util'
import { Problem, ProgramError } from '@onetrip/stack/problem.ts'
import { describeExit, type Program, startProgram } from '@onetrip/stack/program.ts'
import { errorKinds } from '../../../experiment/figures.ts'
import { generatorProgram } from './program.ts'

/** Where Redis listens: always on this machine. */
type Target = { socket: string } | { port: number }

export interface LoadOptions {
  target: Target
  /** `short`: connect, one command, its reply, close. `long`: one command after the other. */
  mode: 'short' | 'long'
  /** At the same time. */
  connections: number
  /** When it ends: after so many seconds, or so many replies. */
  end: { seconds: number } | { replies: number }
  /** `{key}` as an argument stands for a random one of `keys` keys, `key:000000000000` and so on. */
  command: readonly string[]
  /** Default 1. */
  keys?: number
  /**
   * Long connections only: commands per second in all, each with its clock started when it is due.
   * Default: each connection sends as soon as its last command was answered.
   */
  rate?: number
  /** Ends it early; what was measured until then is returned. */
  signal: AbortSignal
  /** About twice a second: replies per second since the last call. */
  onProgress?: (repliesPerSecond: number) => void
}

/** The last line of the generator, see `result.c`. */
export interface Load {
  seconds: number
  /** Replies read to their end, those with an error included. */
  completed: number
  /** By step and code, such as `connect EADDRNOTAVAIL`, each tried again; `error reply` of Redis. */
  errors: Record<string, number>
  /** From sending (with short connections: connecting) to the end of the reply, in milliseconds. */
  latency: {
    p50: number
    p99: number
    max: number
    /** Shares of all replies, 0 to 1: faster than 1 ms, slower than 2 ms. */
    below1: number
    above2: number
  }
  /** Share of the time, 0 to 1, in which the generator ran or was ready to: at 1 it is the limit. */
  demand: number
}

/**
 * Runs the generator to its end.
 *
 * @throws Problem when it cannot be compiled or does not end well.
 */
export async function generateLoad(options: LoadOptions): Promise<Load> {
  const { target, mode, connections, command, keys = 1, rate = 0, signal, onProgress } = options
  const { seconds = 0, replies = 0 }: { seconds?: number; replies?: number } = options.end
  const to = 'socket' in target ? target.socket : target.port
  let result: Load | undefined
  const program = await start(
    [mode, to, connections, seconds, replies, rate, keys, ...command],
    /^started/,
    signal,
    (line) => {
      if (line.startsWith('{')) result = loadOf(line)
      if (line.startsWith('progress ')) onProgress?.(Number(line.split(' ')[1]))
    },
  )
  const stop = () => program.signal('SIGTERM')
  signal.addEventListener('abort', stop)
  if (signal.aborted) stop()
  const exit = await program.exited
  signal.removeEventListener('abort', stop)
  if (result) return result
  throw new Problem(
    `The load generator failed (${describeExit(exit)}):\n${program.lastLines.join('\n')}`,
  )
}

function loadOf(line: string): Load {
  const load: Load = JSON.parse(line)
  const errors = Object.entries(load.errors).flatMap(([kind, count]) => {
    const [, step = kind, errno] = /^(\w+) (\d+)$/.exec(kind) ?? []
    const name = Number(errno) > 0 ? `${step} ${getSystemErrorName(-Number(errno))}` : step
    return count > 0 ? [[name, count] as const] : []
  })
  return { ...load, errors: Object.fromEntries(errors) }
}

/** Idle connections. */
export interface Fleet {
  close(): Promise<void>
}

/**
 * Opens connections that only stay. Each has sent one PING, so Redis has accepted it.
 *
 * @throws Problem when Redis does not take all of them; the reason of `signal`.
 */
export async function holdConnections(
  { socket }: { socket: string },
  count: number,
  signal: AbortSignal,
): Promise<Fleet> {
  if (count === 0) return { close: async () => {} }
  const args = ['hold', socket, count, 0, 0, 0, 1, 'PING']
  const lines: string[] = []
  try {
    const program = await start(args, /^holding/, signal, (line) => lines.push(line))
    return { close: async () => void (await program.stop()) }
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error
    const [, refused] = /^refused (.*)$/m.exec(lines.join('\n')) ?? []
    const last = lines.at(-1) ?? ''
    const errors = last.startsWith('{') ? errorKinds(loadOf(last).errors) : last
    const why = refused === undefined ? errors : `Redis says "${refused.trim()}"`
    throw new Problem(`${count} idle connections cannot be had: ${why}`)
  }
}

async function start(
  args: readonly (string | number)[],
  ready: RegExp,
  signal: AbortSignal,
  onLine: (line: string) => void,
): Promise<Program> {
  return await startProgram({
    name: 'the load generator',
    command: await generatorProgram(signal),
    args: args.map(String),
    ready,
    readyTimeoutMs: 120_000,
    signal,
    onLine,
  })
}
