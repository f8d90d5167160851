import { CallError } from './api.js'

const MAX_WAIT_MS = 15_000

/**
 * Repeats a task while the page is visible, and at once when the page becomes visible. After failures the
 * interval doubles, up to 15 s, and is at least the time in `Retry-After`.
 *
 * @param {() => Promise<void>} task
 * @param {number} everyMs
 */
export function poll(task, everyMs) {
  let timer = 0
  let failures = 0
  let busy = false
  let again = false

  const attempt = async () => {
    try {
      await task()
      failures = 0
      return everyMs
    } catch (error) {
      if (!(error instanceof CallError)) reportError(error)
      failures++
      const retryAfterMs = error instanceof CallError ? error.retryAfterMs : 0
      return Math.max(retryAfterMs, Math.min(everyMs * 2 ** failures, MAX_WAIT_MS))
    }
  }
  /** Runs the task now; if it is running, once more afterwards. */
  const refresh = async () => {
    if (busy) again = true
    if (busy || document.hidden) return
    clearTimeout(timer)
    busy = true
    let waitMs = everyMs
    do {
      again = false
      waitMs = await attempt()
    } while (again && failures === 0)
    busy = false
    timer = setTimeout(refresh, waitMs)
  }
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) clearTimeout(timer)
    else void refresh()
  })
  void refresh()
  return { refresh }
}
