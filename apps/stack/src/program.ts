import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { ProgramError } from './problem.ts'

/** How a program exited: its exit code, or the signal that ended it. Both null: it cannot be run. */
export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

/** A child process. */
export interface Program {
  readonly name: string
  readonly pid: number
  /** Resolves when the process has exited for any reason. Never rejects. */
  readonly exited: Promise<Exit>
  /** The last lines of standard output and standard error. */
  readonly lastLines: readonly string[]
  /** Sends a signal. Does nothing if the process has exited. */
  signal(signal: NodeJS.Signals): void
  /** Writes a line to standard input. Requires the option `input`. */
  write(line: string): void
  /** Sends SIGTERM, and after `graceMs` (default 10,000) SIGKILL. Resolves when the process has exited. */
  stop(graceMs?: number): Promise<Exit>
}

export interface LaunchOptions {
  name: string
  command: string
  args: readonly string[]
  env?: NodeJS.ProcessEnv
  cwd?: string
  /** Whether standard input is a pipe, which ends when this process exits. Default: no input. */
  input?: boolean
  /** Whether standard error goes directly to the user, for programs that show their progress there. */
  showErrors?: boolean
  /** The signal to send if SIGTERM does not end the program. Default SIGKILL, which prevents any cleanup. */
  killSignal?: NodeJS.Signals
  /** Called with each line of standard output and error. */
  onLine?: ((line: string) => void) | undefined
}

const KEPT_LINES = 40

/** The running programs with their kill signals. */
const running = new Map<ChildProcess, NodeJS.Signals>()

/** Kills all programs that this process has started. */
export function killPrograms(): void {
  for (const [child, signal] of running) child.kill(signal)
}

// Standard input ends without a line if the parent has exited. A paused process needs SIGCONT before it can exit.
const GUARD = 'read -r line || { kill -TERM "$1"; kill -CONT "$1"; }'

/**
 * Ends a child process by SIGTERM when this process exits without having stopped it, for example by SIGKILL or an
 * exception. A shell waits until the pipe from this process is closed.
 */
export function endWithThisProcess(child: ChildProcess): void {
  if (child.pid === undefined) return
  const guard = spawn('/bin/sh', ['-c', GUARD, 'sh', String(child.pid)], {
    env: {},
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true, // Ctrl-C in a terminal does not reach it
  })
  guard.on('error', () => {}) // there is no shell
  guard.stdin?.on('error', () => {}) // the guard has exited
  child.once('exit', () => guard.stdin?.end('the child has exited\n'))
}

/**
 * Starts a program without waiting for it. If it cannot be run, `lastLines` has the reason. It ends when this
 * process exits, see `endWithThisProcess`.
 *
 * The program gets its own process group, so that Ctrl-C in a terminal reaches only this process, which then stops
 * its programs in the right order.
 */
export function launch(options: LaunchOptions): Program {
  const { name, command, args, cwd, env = process.env, killSignal = 'SIGKILL' } = options
  const child = spawn(command, args, {
    cwd,
    env,
    stdio: [options.input ? 'pipe' : 'ignore', 'pipe', options.showErrors ? 'inherit' : 'pipe'],
    detached: true,
  })
  endWithThisProcess(child)
  const lastLines: string[] = []
  const { promise: exited, resolve: end } = Promise.withResolvers<Exit>()
  child.stdin?.on('error', () => {}) // the program has exited, see `exited`
  for (const input of [child.stdout, child.stderr]) {
    if (!input) continue
    createInterface({ input }).on('line', (line) => {
      lastLines.push(line)
      if (lastLines.length > KEPT_LINES) lastLines.shift()
      options.onLine?.(line)
    })
  }
  child.once('spawn', () => running.set(child, killSignal))
  child.once('error', (error) => {
    lastLines.push(error.message)
    end({ code: null, signal: null })
  })
  // 'close', not 'exit': all output has been read by then.
  child.once('close', (code, signal) => {
    running.delete(child)
    end({ code, signal })
  })
  return {
    name,
    pid: child.pid ?? -1,
    exited,
    lastLines,
    signal: (signal) => void child.kill(signal),
    write: (line) => void child.stdin?.write(`${line}\n`),
    async stop(graceMs = 10_000) {
      child.kill('SIGTERM')
      const force = setTimeout(() => child.kill(killSignal), graceMs)
      const exit = await exited
      clearTimeout(force)
      return exit
    },
  }
}

export interface ProgramOptions extends LaunchOptions {
  /**
   * The program is ready when a line of its output matches, or when the function resolves. The function's signal is
   * aborted when waiting has ended.
   */
  ready: RegExp | ((signal: AbortSignal) => Promise<unknown>)
  /** Default 15,000. */
  readyTimeoutMs?: number
  /** Cancels the start: stops the program and throws the signal's reason. */
  signal?: AbortSignal | undefined
}

/**
 * Starts a program and waits until it is ready.
 *
 * @throws ProgramError if the program exits before it is ready, or is not ready in time (it is stopped then); the
 *   message contains its last lines. Errors of `ready`. The reason of `signal`.
 */
export async function startProgram(options: ProgramOptions): Promise<Program> {
  const { name, ready, readyTimeoutMs = 15_000, signal } = options
  signal?.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<unknown>()
  const program = launch({
    ...options,
    onLine(line) {
      options.onLine?.(line)
      if (ready instanceof RegExp && ready.test(line)) resolve(line)
    },
  })
  const over = new AbortController()
  const waiting = AbortSignal.any(signal ? [over.signal, signal] : [over.signal])
  waiting.addEventListener('abort', () => reject(waiting.reason))
  const fail = (what: string) =>
    over.abort(new ProgramError(`${name} ${what}:\n${program.lastLines.join('\n')}`))
  void program.exited.then((exit) => fail(`exited before it was ready (${describeExit(exit)})`))
  const late = () => fail(`was not ready after ${readyTimeoutMs / 1000} s`)
  const timeout = setTimeout(late, readyTimeoutMs)
  if (typeof ready === 'function') ready(waiting).then(resolve, reject)
  try {
    await promise
    return program
  } catch (error) {
    await program.stop(1_000)
    throw error
  } finally {
    clearTimeout(timeout)
    over.abort()
  }
}

/** Formats how a program exited: `exit code 1`, or the name of the signal. */
export function describeExit({ code, signal }: Exit): string {
  return signal ?? (code === null ? 'it cannot be run' : `exit code ${code}`)
}

/** The error for a program that exited unexpectedly, with its exit code or signal and its last lines. */
export async function endOf({ name, exited, lastLines }: Program): Promise<ProgramError> {
  const exit = describeExit(await exited)
  const lines = lastLines.map((line) => `\n  ${line}`).join('')
  return new ProgramError(
    `${name} exited unexpectedly (${exit}). Its last lines:${lines || ' none'}`,
  )
}
