import { getSystemErrorName } from 'node:util'
import { Problem, ProgramError } from '@onetrip/stack/problem.ts'
import { describeExit, type Program, startProgram } from '@onetrip/stack/program.ts'
import { generatorProgram } from './program.ts'

/** Where Redis listens: always on this machine. */
export type Target = { socket: string } | { port: number }

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

/** What the generator has seen. */
export interface Load {
  seconds: number
  /** Replies read to their end. */
  completed: number
  /** Of those, errors of Redis's. */
  replyErrors: number
  /** The first of them. */
  firstReplyError?: string
  /** By step and code, such as `connect EADDRNOTAVAIL`; each was tried again. */
  errors: Record<string, number>
  /** How often a Unix socket's backlog was full; each was tried again. */
  backlogFull: number
  latency: Latency
  /** Of the generator itself, in seconds; it has one thread. */
  cpuSeconds: number
  /** How long it was ready to run but had no core. */
  waitedSeconds: number
  /** Share of the time, 0 to 1, in which it ran or was ready to: at 1 it is the limit. */
  demand: number
}

/** From sending (or, with short connections, connecting) to the end of the reply, in milliseconds. */
interface Latency {
  mean: number
  p50: number
  p90: number
  p99: number
  p999: number
  max: number
  /** Shares of all, 0 to 1. */
  below1: number
  from1To2: number
  above2: number
}

// One client address has some 28,000 ports, each taken for a minute after its connection was closed.
const SOURCES = 200

/**
 * Runs the generator to its end.
 *
 * @throws Problem when it cannot be compiled or does not end well.
 */
export async function generateLoad(options: LoadOptions): Promise<Load> {
  const { mode, connections, end, command, keys = 1, rate, signal, onProgress } = options
  let result: Result | undefined
  let refused: string | undefined
  let told = { at: performance.now(), completed: 0 }
  const limit =
    'seconds' in end ? ['--seconds', String(end.seconds)] : ['--total', String(end.replies)]
  const program = await start(
    [
      ...['--mode', mode, ...targetArguments(options.target), ...limit],
      ...(rate === undefined ? [] : ['--rate', String(rate)]),
      ...['--connections', String(connections), '--keys', String(keys), '--', ...command],
    ],
    'started',
    signal,
    (line) => {
      const [word, ...rest] = line.split(' ')
      if (line.startsWith('{')) result = JSON.parse(line)
      else if (word === 'refused') refused ??= rest.join(' ')
      else if (word === 'progress') {
        const now = { at: performance.now(), completed: Number(rest[0]) }
        onProgress?.(((now.completed - told.completed) * 1_000) / (now.at - told.at))
        told = now
      }
    },
  )
  const stop = () => program.signal('SIGTERM')
  signal.addEventListener('abort', stop)
  if (signal.aborted) stop()
  const exit = await program.exited
  signal.removeEventListener('abort', stop)
  if (!result) {
    throw new Problem(
      `The load generator failed (${describeExit(exit)}):\n${program.lastLines.join('\n')}`,
    )
  }
  return loadOf(result, refused)
}

/** Failures by kind, error replies of Redis included. */
export const failuresOf = ({ errors, replyErrors }: Load): Load['errors'] => ({
  ...errors,
  ...(replyErrors > 0 && { 'error reply': replyErrors }),
})

/** A fleet of idle connections. */
export interface Fleet {
  readonly count: number
  close(): Promise<void>
}

/**
 * Opens connections that do nothing but stay (each has sent one PING, so Redis has accepted it).
 *
 * @param onLost is called when one of them is closed by somebody else: the fleet is gone then.
 * @throws Problem when not all of them can be had; the reason of `signal`.
 */
export async function holdConnections(
  target: Target,
  count: number,
  signal: AbortSignal,
  onLost: (reason: Problem) => void = () => {},
): Promise<Fleet> {
  if (count === 0) return { count, close: async () => {} }
  const args = ['--mode', 'hold', ...targetArguments(target), '--connections', String(count)]
  const lines: string[] = []
  let closing = false
  let program: Program
  try {
    program = await start(args, 'holding', signal, (line) => lines.push(line))
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error
    throw new Problem(`${count} idle connections cannot be had: ${whatHappened(lines)}`)
  }
  void program.exited.then(() => {
    if (!closing) onLost(new Problem(`Idle connections were lost: ${whatHappened(lines)}`))
  })
  return {
    count,
    async close() {
      closing = true
      await program.stop()
    },
  }
}

/** The reason in what a generator printed: Redis's words, else the errors that it counted. */
function whatHappened(lines: readonly string[]): string {
  const refused = lines.find((line) => line.startsWith('refused '))
  if (refused) return `Redis says "${refused.slice('refused '.length).trim()}"`
  const result = lines.find((line) => line.startsWith('{'))
  if (!result) return lines.join(' ')
  const { completed, errors } = loadOf(JSON.parse(result), undefined)
  return `${JSON.stringify(errors)} after ${completed}`
}

async function start(
  args: readonly string[],
  until: string,
  signal: AbortSignal,
  onLine: (line: string) => void,
): Promise<Program> {
  return await startProgram({
    name: 'the load generator',
    command: await generatorProgram(signal),
    args,
    ready: new RegExp(`^${until}`),
    readyTimeoutMs: 120_000,
    signal,
    onLine,
  })
}

function targetArguments(target: Target): string[] {
  if ('socket' in target) return ['--unix', target.socket]
  return ['--port', String(target.port), '--sources', String(SOURCES)]
}

/** The generator's last line, see load.c; latencies are in microseconds. */
interface Result {
  seconds: number
  completed: number
  replyErrors: number
  backlogFull: number
  cpuSeconds: number
  waitedSeconds: number
  errors: { step: string; errno: number; count: number }[]
  latency: {
    count: number
    mean: number
    p50: number
    p90: number
    p99: number
    p999: number
    max: number
    below1ms: number
    below2ms: number
  }
}

function loadOf(result: Result, refused: string | undefined): Load {
  const { seconds, cpuSeconds, waitedSeconds, latency } = result
  const share = (count: number) => (latency.count === 0 ? 0 : count / latency.count)
  const errors = result.errors.map(({ step, errno, count }) => {
    return [errno === 0 ? step : `${step} ${getSystemErrorName(-errno)}`, count] as const
  })
  return {
    seconds,
    completed: result.completed,
    replyErrors: result.replyErrors,
    ...(refused !== undefined && { firstReplyError: refused }),
    errors: Object.fromEntries(errors),
    backlogFull: result.backlogFull,
    latency: {
      mean: latency.mean / 1_000,
      p50: latency.p50 / 1_000,
      p90: latency.p90 / 1_000,
      p99: latency.p99 / 1_000,
      p999: latency.p999 / 1_000,
      max: latency.max / 1_000,
      below1: share(latency.below1ms),
      from1To2: share(latency.below2ms - latency.below1ms),
      above2: share(latency.count - latency.below2ms),
    },
    cpuSeconds,
    waitedSeconds,
    demand: (cpuSeconds + waitedSeconds) / seconds,
  }
}
