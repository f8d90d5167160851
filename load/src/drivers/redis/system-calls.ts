import { underTracer } from './tracer.ts'

/** The number of calls by name. */
export type SystemCalls = Readonly<Record<string, number>>

/**
 * Counts the system calls of a thread during `work` with strace.
 *
 * @returns `calls` is null if strace is not installed or lacks permission.
 * @throws the error of `work`; the reason of `signal`.
 */
export async function countSystemCalls<Result>(
  thread: number,
  work: () => Promise<Result>,
  signal: AbortSignal,
): Promise<{ calls: SystemCalls | null; result: Result }> {
  const strace = { command: 'strace', args: ['-c', '-p', String(thread)], attached: /attached/ }
  const { lines, result } = await underTracer(strace, work, signal)
  const calls = lines.flatMap(callOf)
  return { calls: calls.length > 0 ? Object.fromEntries(calls) : null, result }
}

/** Parses a row of `strace -c`: share, seconds, µs per call, calls, errors (optional), name. */
function callOf(line: string): [name: string, calls: number][] {
  const [, calls, name] = /^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)(?:\s+\d+)?\s+(\w+)$/.exec(line) ?? []
  return name && name !== 'total' ? [[name, Number(calls)]] : []
}
