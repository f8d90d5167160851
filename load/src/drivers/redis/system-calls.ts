import { type Program, startProgram } from '@onetrip/stack/program.ts'

/** The system calls of one thread while some work was done. */
export interface SystemCalls {
  total: number
  /** By name; null where only the total could be had. */
  byName: Record<string, number> | null
}

interface Tracer {
  command: string
  args: (thread: number) => string[]
  ready: RegExp | (() => Promise<void>)
  parse: (lines: readonly string[]) => SystemCalls
}

// strace tells which calls they were but slows the thread down; perf needs rights that containers and
// users often lack.
const tracers: readonly Tracer[] = [
  {
    command: 'strace',
    args: (thread) => ['-c', '-p', String(thread)],
    ready: /attached/,
    parse: parseStrace,
  },
  {
    command: 'perf',
    args: (thread) => ['stat', '-x,', '-e', 'raw_syscalls:sys_enter', '-t', String(thread)],
    ready: async () => {},
    parse: parsePerf,
  },
]

/**
 * Counts the system calls of a thread during `work`, by strace or else by perf.
 *
 * @returns null for `calls` when neither is there or may look at the process; `work` is done anyhow.
 * @throws whatever `work` throws; the reason of `signal`.
 */
export async function countSystemCalls<Result>(
  thread: number,
  work: () => Promise<Result>,
  signal: AbortSignal,
): Promise<{ calls: SystemCalls | null; result: Result }> {
  for (const { command, args, ready, parse } of tracers) {
    let program: Program
    const lines: string[] = []
    try {
      program = await startProgram({
        name: command,
        command,
        args: args(thread),
        env: { ...process.env, LC_ALL: 'C' },
        ready,
        signal,
        onLine: (line) => lines.push(line),
      })
    } catch {
      signal.throwIfAborted()
      continue
    }
    try {
      const result = await work()
      program.signal('SIGINT') // detaches, and prints what was counted
      await program.exited
      const calls = parse(lines)
      return { calls: calls.total > 0 ? calls : null, result }
    } finally {
      await program.stop()
    }
  }
  return { calls: null, result: await work() }
}

/** The table of `strace -c`: share, seconds, µs per call, calls, errors (or nothing), name. */
export function parseStrace(lines: readonly string[]): SystemCalls {
  const byName: Record<string, number> = {}
  for (const line of lines) {
    const row = /^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)(?:\s+\d+)?\s+(\w+)$/.exec(line)
    if (row?.[2] && row[2] !== 'total') byName[row[2]] = Number(row[1])
  }
  return { total: Object.values(byName).reduce((sum, calls) => sum + calls, 0), byName }
}

/** `12345,,raw_syscalls:sys_enter,…` */
export function parsePerf(lines: readonly string[]): SystemCalls {
  const line = lines.find((text) => text.includes('raw_syscalls:sys_enter')) ?? ''
  return { total: Number.parseInt(line, 10) || 0, byName: null }
}
