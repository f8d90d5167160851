import { setTimeout as delay } from 'node:timers/promises'

/** Whether a promise resolves within `ms` milliseconds. Rejects if the promise rejects within that time. */
export async function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const settled = new AbortController()
  const late = delay(ms, false, { signal: settled.signal })
  try {
    return await Promise.race([promise.then(() => true), late])
  } finally {
    settled.abort()
  }
}
