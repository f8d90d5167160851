import { readdir, readlink, realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { runCommand } from '../command.ts'

const POLL_INTERVAL_MS = 20
const MAX_POLLS = 250

export interface FileRunOptions {
  /** The folder of the programs that the command starts; no other command may use it. */
  tree: string
  env: NodeJS.ProcessEnv
  /** Time limit in seconds. */
  limitSeconds: number
  signal: AbortSignal
}

export interface FileRun {
  /** Both output streams, in order of arrival. */
  output: string
  timedOut: boolean
  seconds: number
}

/**
 * Runs a command of upstream's suite to its end, with any exit code. Leaves no process behind: ends the rest of its
 * process group, and daemons that left the group.
 *
 * @throws the reason of `signal` after an interrupt, when all processes have ended; the error of `spawn`.
 */
export async function runFile(
  [program, ...args]: readonly [program: string, ...args: string[]],
  { tree, env, limitSeconds, signal }: FileRunOptions,
): Promise<FileRun> {
  const started = performance.now()
  const limit = AbortSignal.timeout(limitSeconds * 1_000)
  let output = ''
  let timedOut = false
  try {
    await runCommand(program, args, {
      cwd: tree,
      env,
      signal: AbortSignal.any([signal, limit]),
      onOutput: (text) => {
        output += text
      },
    })
  } catch (error) {
    if (signal.aborted || !limit.aborted) throw error
    timedOut = true
  } finally {
    await endProgramsOf(tree)
  }
  const seconds = (performance.now() - started) / 1_000
  return { output, timedOut, seconds }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has already ended.
  }
}

/** Kills every process that runs a program of the tree, and waits until they have ended. Only on Linux. */
async function endProgramsOf(tree: string): Promise<void> {
  const programs = `${await realpath(tree)}${sep}`
  for (let polls = 0; polls < MAX_POLLS; polls++) {
    const left = await processesOf(programs)
    if (left.length === 0) return
    for (const pid of left) kill(pid)
    await sleep(POLL_INTERVAL_MS)
  }
}

async function processesOf(programs: string): Promise<number[]> {
  const names = await readdir('/proc').catch(() => [])
  const pids = names.filter((name) => /^\d+$/.test(name)).map(Number)
  const found = await Promise.all(
    pids.map(async (pid) => {
      const program = await readlink(join('/proc', String(pid), 'exe')).catch(() => '')
      return program.startsWith(programs) ? pid : undefined
    }),
  )
  return found.filter((pid) => pid !== undefined)
}
