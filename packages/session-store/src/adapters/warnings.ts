import { publishWarning, type StoreWarning } from '../core/diagnostics.ts'

const INTERVAL_MS = 60_000

/**
 * Returns a function that publishes a warning at most once a minute for each `cause`. The next warning states how
 * many were omitted.
 */
export function limitedWarnings(): (cause: string, warning: StoreWarning) => void {
  const published = new Map<string, { at: number; omitted: number }>()
  return (cause, warning) => {
    const now = performance.now()
    const last = published.get(cause)
    if (last && now < last.at + INTERVAL_MS) {
      last.omitted++
      return
    }
    published.set(cause, { at: now, omitted: 0 })
    const more = last?.omitted ? `; ${last.omitted} more since the last such warning` : ''
    publishWarning({ ...warning, message: warning.message + more })
  }
}
