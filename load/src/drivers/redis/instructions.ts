import { sum } from 'simple-statistics'
import { underTracer } from './tracer.ts'

/**
 * Counts the instructions that a thread executes during `work`, including those in the kernel, with `perf stat`.
 * Unlike CPU time, the count does not depend on the load of the other cores and on shared caches.
 *
 * @returns `instructions` is null if perf is not installed, lacks permission or may count in user mode only
 *   (perf_event_paranoid 2 without root), or if the processor does not count instructions, as in many virtual
 *   machines.
 * @throws the error of `work`; the reason of `signal`.
 */
export async function countInstructions<Result>(
  thread: number,
  work: () => Promise<Result>,
  signal: AbortSignal,
): Promise<{ instructions: number | null; result: Result }> {
  const args = `stat --interval-print 100 --field-separator ; --event instructions --tid ${thread}`
  const perf = { command: 'perf', args: args.split(' '), attached: /^\s*[\d.]+;/ } // the first interval
  const { lines, result } = await underTracer(perf, work, signal)
  return { instructions: instructionsOf(lines), result }
}

/**
 * The sum of lines such as `0.100127212;152368;;instructions;…`; null if nothing was counted. Counts of
 * `instructions:u` lack the kernel and are ignored.
 */
export function instructionsOf(lines: readonly string[]): number | null {
  const counts = lines.map((line) => /^\s*[\d.]+;(\d+);;instructions;/.exec(line)?.[1] ?? 0)
  return sum(counts.map(Number)) || null
}
