import { startProgram } from '@onetrip/stack/program.ts'
import { sum } from 'simple-statistics'

/**
 * Counts the instructions that a thread executes during `work`, in the kernel too, with `perf stat`. Unlike CPU
 * time, the count does not depend on what the processor's other cores and caches do meanwhile.
 *
 * @returns null for `instructions` when perf is not installed, must not watch the thread or may count in user mode
 *   only (perf_event_paranoid 2 without root), or when the processor (often a virtual one) does not count.
 * @throws what `work` throws; the reason of `signal`.
 */
export async function countInstructions<Result>(
  thread: number,
  work: () => Promise<Result>,
  signal: AbortSignal,
): Promise<{ instructions: number | null; result: Result }> {
  const lines: string[] = []
  const perf = await startProgram({
    name: 'perf',
    command: 'perf',
    args: `stat --interval-print 100 --field-separator ; --event instructions --tid ${thread}`.split(
      ' ',
    ),
    env: { ...process.env, LC_ALL: 'C' },
    ready: /^\s*[\d.]+;/, // the first interval
    signal,
    onLine: (line) => lines.push(line),
  }).catch(() => null)
  try {
    const result = await work()
    perf?.signal('SIGINT') // prints the last interval
    await perf?.exited
    return { instructions: instructionsOf(lines), result }
  } finally {
    await perf?.stop()
  }
}

/**
 * The sum of lines such as `0.100127212;152368;;instructions;…`; null if nothing was counted. Counts of
 * `instructions:u` lack the kernel and are ignored.
 */
export function instructionsOf(lines: readonly string[]): number | null {
  const counts = lines.map((line) => /^\s*[\d.]+;(\d+);;instructions;/.exec(line)?.[1] ?? 0)
  return sum(counts.map(Number)) || null
}
