import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'

export interface UntilOptions {
  /** Default: no limit. */
  timeoutMs?: number
  /** Pause between two calls, in ms. Default 50. */
  everyMs?: number
  signal?: AbortSignal | undefined
}

/**
 * Calls `condition` repeatedly until it returns true.
 *
 * @returns false after `timeoutMs`.
 * @throws errors of `condition`; an AbortError after an abort.
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  { timeoutMs = Number.POSITIVE_INFINITY, everyMs = 50, signal }: UntilOptions = {},
): Promise<boolean> {
  const deadline = performance.now() + timeoutMs
  while (!(await condition())) {
    if (performance.now() >= deadline) return false
    await delay(everyMs, undefined, { signal })
  }
  return true
}

/** Resolves with the result of `work`. @throws the reason of the signal as soon as it is aborted. */
export async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  work.catch(() => {}) // it may reject after the abort
  signal.throwIfAborted()
  const done = new AbortController()
  const aborted = once(signal, 'abort', { signal: done.signal }).then(() => {
    throw signal.reason
  })
  aborted.catch(() => {})
  try {
    return await Promise.race([work, aborted])
  } finally {
    done.abort()
  }
}
