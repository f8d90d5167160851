import { seededRandom } from '@onetrip/stack/measure/workload.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { Option } from 'commander'

/** Evenly spaced requests, or a Poisson process with the same mean rate. */
const arrivals = ['even', 'poisson'] as const
export type Arrivals = (typeof arrivals)[number]

/** `--arrivals` */
export const arrivalsOption = (): Option =>
  new Option('--arrivals <how>', 'evenly spaced, or a Poisson process with the same mean rate')
    .choices(arrivals)
    .default('even')

interface ArrivalsOptions {
  rate: number
  seconds: number
  arrivals: Arrivals
  /** For `poisson`. */
  seed: number
}

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
 * The times when the requests of a run are due, in milliseconds since its start, in ascending order. Evenly spaced
 * requests start at 0. The array is in shared memory.
 *
 * @throws Problem as `requireBounded`.
 */
export function arrivalTimes({ rate, seconds, arrivals, seed }: ArrivalsOptions): Float64Array {
  requireBounded(rate, seconds)
  const random = seededRandom(seed)
  const times: number[] = []
  // The times between the requests of a Poisson process have an exponential distribution.
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
