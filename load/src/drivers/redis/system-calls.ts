import { startProgram } from '@onetrip/stack/program.ts'
import { generateLoad, type LoadOptions } from './generator/load.ts'

/** Of the run in which calls are counted. */
const SECONDS = 0.4

/**
 * Runs a load for a moment and counts the system calls of a thread with strace.
 *
 * @returns calls per reply, by name; null if strace is not installed or lacks permission.
 * @throws as `generateLoad`.
 */
export async function systemCallsPerReply(
  thread: number,
  load: Omit<LoadOptions, 'end'>,
): Promise<Record<string, number> | null> {
  const lines: string[] = []
  const tracer = await startProgram({
    name: 'strace',
    command: 'strace',
    args: ['-c', '-p', String(thread)],
    ready: /attached/,
    signal: load.signal,
    env: { ...process.env, LC_ALL: 'C' },
    onLine: (line) => lines.push(line),
  }).catch(() => null)
  if (!tracer) return null
  try {
    const { completed } = await generateLoad({ ...load, end: { seconds: SECONDS } })
    tracer.signal('SIGINT') // then it prints its counts
    await tracer.exited
    const calls = lines.flatMap(callOf).map(([name, count]) => [name, count / completed])
    return calls.length > 0 && completed > 0 ? Object.fromEntries(calls) : null
  } finally {
    await tracer.stop()
  }
}

/** Parses a row of `strace -c`: share, seconds, µs per call, calls, errors (optional), name. */
function callOf(line: string): [name: string, calls: number][] {
  const [, calls, name] = /^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)(?:\s+\d+)?\s+(\w+)$/.exec(line) ?? []
  return name && name !== 'total' ? [[name, Number(calls)]] : []
}
