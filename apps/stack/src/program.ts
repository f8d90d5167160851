import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** How a program ended: its exit code, or the signal that ended it. */
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
  /** Gives a program that has `input` a line to read. */
  write(line: string): void
  /** SIGTERM, then SIGKILL after `graceMs` (default 10,000). Resolves when the process has ended. */
  stop(graceMs?: number): Promise<Exit>
}

/** Resolves when the program is ready; is aborted when waiting has become pointless. */
type ReadyProbe = (signal: AbortSignal) => Promise<void>

export interface ProgramOptions {
  name: string
  command: string
  args: readonly string[]
  env?: NodeJS.ProcessEnv
  cwd?: string
  /** Whether it gets a pipe as standard input (which ends when this process does); default none. */
  input?: boolean
  /** The program counts as started when one of its lines matches, or when the probe resolves. */
  ready: RegExp | ReadyProbe
  /** Default 15,000. */
  readyTimeoutMs?: number
  /** Gives the start up: the program is ended and the signal's reason thrown. */
  signal?: AbortSignal
  onLine?: (line: string) => void
}

const KEPT_LINES = 40

const running = new Set<ChildProcess>()

// The last resort when this process ends without having stopped its programs, as after an exception.
process.on('exit', () => {
  for (const child of running) child.kill('SIGTERM')
})

/** Ends every program of this process at once, for a user who does not want to wait any longer. */
export function killPrograms(): void {
  for (const child of running) child.kill('SIGKILL')
}

export class ProgramError extends Error {
  override name = 'ProgramError'
}

/** In words, how a program ended: `exit code 1`, or the name of the signal. */
export function describeExit({ code, signal }: Exit): string {
  return signal ?? `exit code ${code}`
}

const TOLD_LINES = 12

/** That a program has ended although nobody stopped it: how, and what it printed last. */
export async function endOf(program: Program): Promise<ProgramError> {
  const exit = describeExit(await program.exited)
  const last = program.lastLines.slice(-TOLD_LINES).map((line) => `\n  ${line}`)
  const lines =
    last.length === 0 ? '; it had printed nothing.' : `. Its last lines:${last.join('')}`
  return new ProgramError(`${program.name} ended by itself (${exit})${lines}`)
}

/**
 * Starts a program and waits until it says that it is ready.
 *
 * It gets a process group of its own, so that Ctrl-C in a terminal reaches only the process that
 * started it, which then ends its programs in the right order.
 *
 * @throws ProgramError when it ends before it is ready or is not ready in time (it is ended then);
 *   the message has its last lines. Whatever the probe throws. The reason of `signal`.
 */
export async function startProgram(options: ProgramOptions): Promise<Program> {
  const { name, command, args, ready, readyTimeoutMs = 15_000, signal, onLine } = options
  signal?.throwIfAborted()
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: options.env ?? process.env,
    stdio: [options.input ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    detached: true,
  })
  child.stdin?.on('error', () => {}) // it has ended, which `exited` tells
  const lastLines: string[] = []
  const isReady = Promise.withResolvers<void>()
  const hasExited = Promise.withResolvers<Exit>()

  for (const stream of [child.stdout, child.stderr]) {
    if (!stream) continue
    createInterface({ input: stream }).on('line', (line) => {
      lastLines.push(line)
      if (lastLines.length > KEPT_LINES) lastLines.shift()
      onLine?.(line)
      if (ready instanceof RegExp && ready.test(line)) isReady.resolve()
    })
  }
  child.once('error', (error) => {
    isReady.reject(new ProgramError(`${name} could not be started: ${error.message}`))
    hasExited.resolve({ code: null, signal: null })
  })
  child.once('spawn', () => running.add(child))
  // 'close' and not 'exit': by then everything that it printed has been read.
  child.once('close', (code, signal) => {
    running.delete(child)
    const exit = { code, signal }
    hasExited.resolve(exit)
    isReady.reject(
      new ProgramError(
        `${name} ended before it was ready (${describeExit(exit)}):\n${lastLines.join('\n')}`,
      ),
    )
  })

  const program: Program = {
    name,
    get pid() {
      return child.pid ?? -1
    },
    exited: hasExited.promise,
    lastLines,
    signal: (signal) => void child.kill(signal),
    write: (line) => void child.stdin?.write(`${line}\n`),
    async stop(graceMs = 10_000) {
      child.kill('SIGTERM')
      const force = setTimeout(() => child.kill('SIGKILL'), graceMs)
      const exit = await hasExited.promise
      clearTimeout(force)
      return exit
    },
  }

  const timeout = setTimeout(() => {
    isReady.reject(
      new ProgramError(
        `${name} was not ready after ${readyTimeoutMs / 1000} s:\n${lastLines.join('\n')}`,
      ),
    )
  }, readyTimeoutMs)
  const onAbort = () => isReady.reject(signal?.reason)
  signal?.addEventListener('abort', onAbort)
  const probing = new AbortController()
  if (typeof ready === 'function') ready(probing.signal).then(isReady.resolve, isReady.reject)
  try {
    await isReady.promise
  } catch (error) {
    await program.stop(1_000)
    throw error
  } finally {
    clearTimeout(timeout)
    probing.abort()
    signal?.removeEventListener('abort', onAbort)
  }
  return program
}
