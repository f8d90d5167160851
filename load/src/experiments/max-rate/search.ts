interface SearchOptions {
  /** The first rate, in requests per second. */
  start: number
  /** The result is within this factor of the highest rate: 1.05 for 5 %. */
  precision: number
  /** The maximum number of runs. */
  runs: number
}

const [LOWEST, HIGHEST] = [1, 1_000_000]

/**
 * Searches for the highest rate that holds. Doubles or halves the first rate until one rate holds and one does not,
 * then tries rates between them. A rate is rejected after two failed runs, because other programs may disturb one.
 *
 * @param holds measures whether a rate in requests per second is within the limit.
 * @returns the highest rate that held, or null; the number of runs; whether the search reached the precision before
 *   `runs` ended it.
 */
export async function highestRate(
  holds: (rate: number) => Promise<boolean>,
  { start, precision, runs }: SearchOptions,
): Promise<{ rate: number | null; runs: number; isPrecise: boolean }> {
  let [low, high, done] = [0, Number.POSITIVE_INFINITY, 0]
  let rate = Math.min(HIGHEST, Math.max(LOWEST, Math.round(start)))
  let isPrecise = false
  while (done < runs && !isPrecise) {
    done++
    let isHeld = await holds(rate)
    if (!isHeld && done < runs) {
      done++
      isHeld = await holds(rate)
    }
    if (isHeld) low = rate
    else high = rate
    const next = nextRate(low, high)
    isPrecise = next <= low || next >= high || high / low <= precision
    rate = next
  }
  return { rate: low || null, runs: done, isPrecise }
}

function nextRate(low: number, high: number): number {
  if (low === 0) return Math.max(LOWEST, Math.floor(high / 2))
  if (high === Number.POSITIVE_INFINITY) return Math.min(HIGHEST, low * 2)
  return Math.round(Math.sqrt(low * high))
}
