import { startProgram } from '@onetrip/stack/program.ts'
import { sum } from 'simple-statistics'

/**
 * Counts the instructions that a thread executes during `work`, in the kernel too, with `perf stat`. Unlike CPU
 * time, the count does not depend on what the processor's other cores and caches do meanwhile.
 *
 * @returns null for `instructions` when perf is not installed or must not watch the thread, or when the
 *   processor (often a virtual one) does not count.
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
    ready: /;instructions/, // the first interval
    signal,
    onLine: (line) => lines.push(line),
  }).catch(() => null)
  try {
    const result = await work()
    perf?.signal('SIGINT') // prints the last interval
    await perf?.exited
    return { instructions: sum(lines.map(instructionsOf)) || null, result }
  } finally {
    await perf?.stop()
  }
}

/** Of a line such as `0.100127212;152368;;instructions;…`; 0 where nothing was counted. */
function instructionsOf(line: string): number {
  const [, count] = /^\s*[\d.]+;(\d+);;instructions/.exec(line) ?? []
  return Number(count ?? 0)
}
