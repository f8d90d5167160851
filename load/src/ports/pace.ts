const TICK_MS = 10

export interface Pace {
  perSecond: number
  seconds: number
  /** Calls that are not settled, beyond which no more are begun. */
  atOnce: number
  signal: AbortSignal
}

/**
 * Begins calls at a steady rate, whatever becomes of them, and resolves when all are settled.
 *
 * @param call never rejects.
 * @throws the reason of `signal`.
 */
export async function callSteadily(call: () => Promise<void>, pace: Pace): Promise<void> {
  const { perSecond, seconds, atOnce, signal } = pace
  const startedAt = performance.now()
  const open = new Set<Promise<void>>()
  let due = 0
  const { promise: over, resolve } = Promise.withResolvers<void>()
  const tick = setInterval(() => {
    const elapsed = Math.min(seconds, (performance.now() - startedAt) / 1_000)
    // What could not be begun in time is not made up for.
    const missed = Math.max(0, Math.floor(elapsed * perSecond) - due)
    due += missed
    for (let begun = 0; begun < missed && open.size < atOnce; begun++) {
      const work: Promise<void> = call().finally(() => open.delete(work))
      open.add(work)
    }
    if (elapsed >= seconds || signal.aborted) resolve()
  }, TICK_MS)
  await over
  clearInterval(tick)
  await Promise.all(open)
  signal.throwIfAborted()
}
