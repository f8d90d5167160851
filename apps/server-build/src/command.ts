import { spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { finished } from 'node:stream/promises'

export interface CommandOptions {
  cwd?: string
  env?: NodeJS.ProcessEnv
  /** When aborted, ends the command and all processes that it started. */
  signal?: AbortSignal
  /** Called with each chunk of both output streams. */
  onOutput?: (text: string) => void
}

export interface Finished {
  /** null if a signal ended the command. */
  code: number | null
  stdout: string
  stderr: string
}

const TERMINATION_GRACE_MS = 2_000

/**
 * Runs a command to its end. Any exit code is accepted. The command has its own process group, so that an
 * interrupt ends a whole `make -j` and not only its first process. When the command has ended, the rest of
 * the group is killed.
 *
 * @throws the reason of `signal` once the group has ended; the error of `spawn` if the command does not
 *   exist.
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
  // A process of the group could keep the output open, so that "close" would never come.
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
    // The group has already ended.
  }
}

/** Runs a command and writes its output to a file, too. */
export async function runLogged(
  path: string,
  command: string,
  args: readonly string[],
  options: CommandOptions,
): Promise<{ code: number | null; output: string }> {
  await mkdir(dirname(path), { recursive: true })
  const log = createWriteStream(path)
  let output = ''
  const onOutput = (text: string) => {
    log.write(text)
    output += text
    options.onOutput?.(text)
  }
  try {
    const { code } = await runCommand(command, args, { ...options, onOutput })
    return { code, output }
  } finally {
    log.end()
    await finished(log)
  }
}

/**
 * A minimal environment for a command. Leaves out compiler flags (they would change a build without changing
 * its key) and the variables that git, npm and make set for child processes.
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
