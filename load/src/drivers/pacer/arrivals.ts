import { seededRandom } from '@onetrip/stack/measure/workload.ts'
import { Problem } from '@onetrip/stack/problem.ts'

/** When requests are due: evenly spaced, or at random times with the same mean rate. */
export const arrivals = ['even', 'poisson'] as const
export type Arrivals = (typeof arrivals)[number]

interface ArrivalsOptions {
  rate: number
  seconds: number
  arrivals: Arrivals
  /** Of the random times. */
  seed: number
}

/** @throws Problem when a run would have more requests than its schedule has room for in memory. */
export function requireBounded(rate: number, seconds: number): void {
  if (rate * seconds <= 10_000_000) return
  throw new Problem(
    `${rate} requests/s for ${seconds} s are more than 10 million in one run: choose a lower rate or a shorter run.`,
  )
}

/** Runs are made longer for more requests only up to this. */
export const MOST_SECONDS = 20

/**
 * How many seconds a run at a rate takes: `duration`, or longer where `requests` (of all rounds together)
 * need it and it is no more than 20 s.
 */
export function secondsAt(
  rate: number,
  { duration, requests, rounds }: { duration: number; requests: number; rounds: number },
): number {
  const needed = requests / rounds / rate
  return needed > MOST_SECONDS ? duration : Math.max(duration, needed)
}

/**
 * When each request of a run is due: milliseconds since its start, ascending, all below `seconds`. The
 * first of evenly spaced ones is due at 0. It is in memory that threads can share.
 *
 * @throws Problem as `requireBounded`.
 */
export function arrivalTimes({ rate, seconds, arrivals, seed }: ArrivalsOptions): Float64Array {
  requireBounded(rate, seconds)
  const random = seededRandom(seed)
  const times: number[] = []
  // A Poisson process: the times between two requests are distributed exponentially.
  const gap = () => (-Math.log(1 - random()) * 1_000) / rate
  if (arrivals === 'even') {
    for (let index = 0; index < rate * seconds; index++) times.push((index * 1_000) / rate)
  } else {
    for (let at = gap(); at < seconds * 1_000; at += gap()) times.push(at)
  }
  const shared = new Float64Array(new SharedArrayBuffer(times.length * 8))
  shared.set(times)
  return shared
}
