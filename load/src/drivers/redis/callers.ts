import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import { STEADY_S, untilSteady } from '../age.ts'

/** Makes one call and resolves when it has returned. */
export type Caller = () => Promise<unknown>

/**
 * Each caller makes the next call when the previous one has returned, until the time is over.
 *
 * @returns a histogram of the latencies in nanoseconds.
 * @throws the error of a call; the reason of `signal`.
 */
export async function callFor(
  callers: readonly Caller[],
  seconds: number,
  signal?: AbortSignal,
): Promise<RecordableHistogram> {
  const latencies = createHistogram({ figures: 3 })
  const until = performance.now() + seconds * 1_000
  await Promise.all(
    callers.map(async (call) => {
      do {
        const begun = process.hrtime.bigint()
        await call()
        latencies.record(process.hrtime.bigint() - begun)
      } while (performance.now() < until && !signal?.aborted)
    }),
  )
  signal?.throwIfAborted()
  return latencies
}

/** Calls for `seconds`, then, if wanted, until the rate stops rising. @returns the number of calls. @throws as `callFor`. */
export async function warmUp(
  callers: readonly Caller[],
  { seconds, isLong }: { seconds: number; isLong: boolean },
  signal?: AbortSignal,
): Promise<number> {
  let calls = 0
  const callOn = async (duration: number) => {
    const { count } = await callFor(callers, duration, signal)
    calls += count
    return count
  }
  await callOn(seconds)
  if (isLong) await untilSteady(() => callOn(STEADY_S))
  return calls
}

/** The percentiles of `callFor`, in milliseconds. */
export const percentilesOf = (latencies: RecordableHistogram) => ({
  p50: latencies.percentile(50) / 1e6,
  p99: latencies.percentile(99) / 1e6,
})
