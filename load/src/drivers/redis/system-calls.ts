import { startProgram } from '@onetrip/stack/program.ts'

/** How often a thread made each system call while some work was done. */
export type SystemCalls = Readonly<Record<string, number>>

/**
 * Counts the system calls of a thread during `work` with strace.
 *
 * @returns null for `calls` when strace is not installed or must not trace the process.
 * @throws what `work` throws; the reason of `signal`.
 */
export async function countSystemCalls<Result>(
  thread: number,
  work: () => Promise<Result>,
  signal: AbortSignal,
): Promise<{ calls: SystemCalls | null; result: Result }> {
  const lines: string[] = []
  const strace = await startProgram({
    name: 'strace',
    command: 'strace',
    args: ['-c', '-p', String(thread)],
    env: { ...process.env, LC_ALL: 'C' },
    ready: /attached/,
    signal,
    onLine: (line) => lines.push(line),
  }).catch(() => null)
  try {
    const result = await work()
    strace?.signal('SIGINT') // detaches, and prints what was counted
    await strace?.exited
    const calls = lines.flatMap(callOf)
    return { calls: calls.length > 0 ? Object.fromEntries(calls) : null, result }
  } finally {
    await strace?.stop()
  }
}

/** A row of `strace -c`: share, seconds, µs per call, calls, errors (or nothing), name. */
function callOf(line: string): [name: string, calls: number][] {
  const [, calls, name] = /^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)(?:\s+\d+)?\s+(\w+)$/.exec(line) ?? []
  return name && name !== 'total' ? [[name, Number(calls)]] : []
}
