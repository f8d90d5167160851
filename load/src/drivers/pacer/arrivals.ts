import { Problem } from '@onetrip/stack/problem.ts'

/** @throws Problem when a run would have more than 10 million requests, because its schedule is kept in memory. */
export function requireBounded(rate: number, seconds: number): void {
  if (rate * seconds <= 10_000_000) return
  throw new Problem(
    `${rate} requests/s for ${seconds} s are more than 10 million requests in one run. Use a lower rate or a shorter duration.`,
  )
}

/** Runs are not extended beyond this, to reach a number of requests. */
export const MAX_SECONDS = 20

/**
 * The length of a run in seconds: `duration`, or longer if `requests` (in all rounds together) need more time. If they
 * need more than 20 s, the length is `duration`.
 */
export function secondsAt(
  rate: number,
  { duration, requests, rounds }: { duration: number; requests: number; rounds: number },
): number {
  const needed = requests / rounds / rate
  return needed > MAX_SECONDS ? duration : Math.max(duration, needed)
}

/**
 * The times when the requests of a run are due, in milliseconds since its start: evenly spaced, from 0. The array is in
 * shared memory.
 *
 * @throws Problem as `requireBounded`.
 */
export function arrivalTimes(rate: number, seconds: number): Float64Array {
  requireBounded(rate, seconds)
  const count = Math.ceil(rate * seconds)
  const times = new Float64Array(new SharedArrayBuffer(count * 8))
  for (let index = 0; index < count; index++) times[index] = (index * 1_000) / rate
  return times
}
