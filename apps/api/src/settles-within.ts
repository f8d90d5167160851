import { setTimeout as delay } from 'node:timers/promises'

/** Whether a promise resolves within a time in ms. Rejects if the promise does so before. */
export async function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const settled = new AbortController()
  const late = delay(ms, false, { signal: settled.signal })
  try {
    return await Promise.race([promise.then(() => true), late])
  } finally {
    settled.abort()
  }
}
