interface SearchOptions {
  /** The first rate, in requests per second. */
  start: number
  /** The result is within this factor of the highest rate: 1.05 for 5 %. */
  precision: number
  /** At most so many runs. */
  runs: number
}

const [LOWEST, HIGHEST] = [1, 1_000_000]

/**
 * Searches for the highest rate that holds: doubles or halves the first one until one holds and one does not,
 * then tries between the two. A rate is rejected after two runs that fail, since other programs may disturb one.
 *
 * @param holds runs a rate in requests per second.
 * @returns the highest rate that held, null for none; how many runs there were; whether it
 *   is as precise as asked for, and not ended by `runs`.
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
