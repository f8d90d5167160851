import { spawn } from 'node:child_process'

export interface CommandOptions {
  cwd?: string
  env?: NodeJS.ProcessEnv
  /** Ends the command, with all processes that it started, when it is aborted. */
  signal?: AbortSignal
  /** Gets the output, both streams, as it comes. */
  onOutput?: (text: string) => void
}

export interface Finished {
  /** null when a signal ended it. */
  code: number | null
  stdout: string
  stderr: string
}

const TERMINATION_GRACE_MS = 2_000

/**
 * Runs a command to its end, whatever its exit code. It leads a process group of its own, so that
 * an interrupt ends a whole `make -j` and not only its first process. What is left of the group when
 * the command has ended is killed.
 *
 * @throws the reason of `signal` once the group has ended; the error of `spawn` if there is no such
 *   command.
 */
export async function runCommand(
  command: string,
  args: readonly string[],
  { cwd, env, signal, onOutput }: CommandOptions = {},
): Promise<Finished> {
  signal?.throwIfAborted()
  const child = spawn(command, args, {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      if (onOutput) onOutput(text)
      else output[name] += text
    })
  }
  const ended = Promise.withResolvers<number | null>()
  child.once('error', ended.reject)
  // Otherwise a process of the group could hold the output open, and "close" would not come.
  child.once('exit', () => signalGroup(child.pid, 'SIGKILL'))
  child.once('close', ended.resolve)

  let force: NodeJS.Timeout | undefined
  const endGroup = () => {
    signalGroup(child.pid, 'SIGTERM')
    force = setTimeout(() => signalGroup(child.pid, 'SIGKILL'), TERMINATION_GRACE_MS)
  }
  signal?.addEventListener('abort', endGroup)
  try {
    const code = await ended.promise
    signal?.throwIfAborted()
    return { code, ...output }
  } finally {
    signal?.removeEventListener('abort', endGroup)
    clearTimeout(force)
  }
}

function signalGroup(leader: number | undefined, signal: NodeJS.Signals): void {
  if (leader === undefined) return
  try {
    process.kill(-leader, signal)
  } catch {
    // The group has ended by itself.
  }
}

/**
 * The environment for a command that must see only what is passed to it: neither flags for a
 * compiler that happen to be set here (they would change the build without changing its key), nor
 * the variables by which git, npm or make talk to their children.
 */
export function plainEnvironment(
  env: NodeJS.ProcessEnv,
  additions: Record<string, string> = {},
): NodeJS.ProcessEnv {
  const kept = ['PATH', 'HOME', 'TMPDIR', 'CC', 'CXX'].flatMap((name) => {
    const value = env[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  return { ...Object.fromEntries(kept), LC_ALL: 'C', ...additions }
}
