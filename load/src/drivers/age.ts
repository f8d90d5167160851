import { Option } from 'commander'

const ages = ['warm', 'fresh'] as const
/** Of the measured processes. */
export type Age = (typeof ages)[number]

const MIN_RUNS = 6
const MAX_RUNS = 36
/** Of a run of `untilSteady`. */
export const STEADY_S = 5
const RISE = 1.02

/** `--processes warm|fresh`. */
export const ageOption = (fresh: string): Option =>
  new Option(
    '--processes <age>',
    `warm: load each case until its rate stops rising, ${MIN_RUNS * STEADY_S} s to 3 min, before the first round; fresh: ${fresh}`,
  ).choices(ages)

/**
 * Repeats runs of `STEADY_S` seconds until two in a row were not faster than all before them by 2 %: six at least,
 * because the code of a process is compiled again and again in its first seconds.
 *
 * @param run returns its rate.
 * @returns the number of runs.
 */
export async function untilSteady(run: () => Promise<number>): Promise<number> {
  let [runs, best, level] = [0, 0, 0]
  while (runs < MAX_RUNS && (runs < MIN_RUNS || level < 2)) {
    const rate = await run()
    runs++
    level = rate > best * RISE ? 0 : level + 1
    best = Math.max(best, rate)
  }
  return runs
}
