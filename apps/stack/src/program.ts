import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { ProgramError } from './problem.ts'

/** How a program ended: its exit code, or the signal that ended it. Neither: it cannot be run. */
export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

/** A program of ours that runs as a process of its own. */
export interface Program {
  readonly name: string
  readonly pid: number
  /** Resolves when the process has ended, however it ended; never rejects. */
  readonly exited: Promise<Exit>
  /** The last lines that it printed, standard output and error together. */
  readonly lastLines: readonly string[]
  /** Sends a signal. Does nothing when the process has ended. */
  signal(signal: NodeJS.Signals): void
  /** Writes a line to the standard input of a program that has `input`. */
  write(line: string): void
  /** SIGTERM, after `graceMs` (default 10,000) SIGKILL. Resolves when the process has ended. */
  stop(graceMs?: number): Promise<Exit>
}

export interface LaunchOptions {
  name: string
  command: string
  args: readonly string[]
  env?: NodeJS.ProcessEnv
  cwd?: string
  /** Whether standard input is a pipe, which ends when this process does. Default: no input. */
  input?: boolean
  /** Whether standard error goes straight to the user, for a program that shows its progress there. */
  showErrors?: boolean
  /** What ends it when SIGTERM does not. Default SIGKILL, after which nothing can be cleaned up. */
  killSignal?: NodeJS.Signals
  /** Called with each line of standard output and error. */
  onLine?: ((line: string) => void) | undefined
}

const KEPT_LINES = 40

/** The programs that run, and the signal that kills each. */
const running = new Map<ChildProcess, NodeJS.Signals>()

/** Kills every program that this process has started. */
export function killPrograms(): void {
  for (const [child, signal] of running) child.kill(signal)
}

// Standard input ends without a line when the parent has ended. A stopped process needs SIGCONT to end.
const GUARD = 'read -r line || { kill -TERM "$1"; kill -CONT "$1"; }'

/**
 * Ends a child process by SIGTERM when this process ends without having stopped it, also by SIGKILL or an
 * exception. For this, a shell waits until the pipe from this process is closed.
 */
export function endWithThisProcess(child: ChildProcess): void {
  if (child.pid === undefined) return
  const guard = spawn('/bin/sh', ['-c', GUARD, 'sh', String(child.pid)], {
    env: {},
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true, // Ctrl-C in a terminal does not reach it
  })
  guard.on('error', () => {}) // there is no shell
  guard.stdin?.on('error', () => {}) // the guard has ended
  child.once('exit', () => guard.stdin?.end('the child has ended\n'))
}

/**
 * Starts a program without waiting for it. If it cannot be run, its last line says why. It ends when this
 * process ends, see `endWithThisProcess`.
 *
 * It has a process group of its own, so that Ctrl-C in a terminal reaches only the process that started it,
 * which then ends its programs in the right order.
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
  child.stdin?.on('error', () => {}) // the program has ended, see `exited`
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
  // 'close' and not 'exit': by then everything that it printed has been read.
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
   * The program is ready when one of its lines matches, or when the function resolves, whose signal
   * is aborted when there is nothing to wait for any more.
   */
  ready: RegExp | ((signal: AbortSignal) => Promise<unknown>)
  /** Default 15,000. */
  readyTimeoutMs?: number
  /** Cancels the start: the program is stopped and the signal's reason thrown. */
  signal?: AbortSignal | undefined
}

/**
 * Starts a program and waits until it is ready.
 *
 * @throws ProgramError when it ends before it is ready or is not ready in time (it is stopped then);
 *   the message has its last lines. Whatever `ready` throws. The reason of `signal`.
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
  void program.exited.then((exit) => fail(`ended before it was ready (${describeExit(exit)})`))
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

/** How a program ended, in words: `exit code 1`, or the name of the signal. */
export function describeExit({ code, signal }: Exit): string {
  return signal ?? (code === null ? 'it cannot be run' : `exit code ${code}`)
}

/** An error that says that a program has ended by itself: how, and what it printed last. */
export async function endOf({ name, exited, lastLines }: Program): Promise<ProgramError> {
  const exit = describeExit(await exited)
  const lines = lastLines.map((line) => `\n  ${line}`).join('')
  return new ProgramError(`${name} ended by itself (${exit}). Its last lines:${lines || ' none'}`)
}
