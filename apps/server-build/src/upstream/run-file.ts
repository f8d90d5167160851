import { spawn } from 'node:child_process'
import { readdir, readlink, realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const LOOK_AGAIN_AFTER_MS = 20
const LOOKS = 250

export interface FileRunOptions {
  /** The tree in which the programs are that the command starts, and nobody else's. */
  tree: string
  env: NodeJS.ProcessEnv
  /** After so much time it is over. */
  limitSeconds: number
  signal: AbortSignal
}

export interface FileRun {
  /** Both streams, as they came. */
  output: string
  /** null when a signal ended it, such as ours after the time limit. */
  code: number | null
  timedOut: boolean
  seconds: number
}

/**
 * Runs a command of upstream's suite to its end and leaves nothing behind: neither what is still in its
 * process group, nor servers that left the group to be daemons.
 *
 * @throws the reason of `signal` after an interrupt, when everything has ended; the error of `spawn`.
 */
export async function runFile(
  [program, ...args]: readonly [program: string, ...args: string[]],
  { tree, env, limitSeconds, signal }: FileRunOptions,
): Promise<FileRun> {
  signal.throwIfAborted()
  const started = performance.now()
  const child = spawn(program, args, {
    cwd: tree,
    env,
    detached: true, // a session of its own: Ctrl-C in the terminal does not reach it
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const closed = Promise.withResolvers<number | null>()
  child.once('error', closed.reject)
  child.once('close', closed.resolve)
  const endGroup = () => killGroup(child.pid)
  // Helpers of the suite that outlive it hold its output open, so that "close" would not come.
  child.once('exit', endGroup)

  let timedOut = false
  const limit = setTimeout(() => {
    timedOut = true
    endGroup()
  }, limitSeconds * 1_000)
  signal.addEventListener('abort', endGroup)
  try {
    const code = await closed.promise
    return { output, code, timedOut, seconds: (performance.now() - started) / 1_000 }
  } finally {
    clearTimeout(limit)
    signal.removeEventListener('abort', endGroup)
    await endProgramsOf(tree)
    signal.throwIfAborted()
  }
}

function killGroup(leader: number | undefined): void {
  if (leader !== undefined) kill(-leader)
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

/** Ends every process that runs a program of the tree, and waits for that. Only on Linux. */
async function endProgramsOf(tree: string): Promise<void> {
  const programs = `${await realpath(tree)}${sep}`
  for (let looks = 0; looks < LOOKS; looks++) {
    const left = await processesOf(programs)
    if (left.length === 0) return
    for (const pid of left) kill(pid)
    await sleep(LOOK_AGAIN_AFTER_MS)
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
