import { createHash } from 'node:crypto'
import type { Keys } from '../keys.ts'
import type { Command, Update } from '../updates.ts'

/** How many attempts there were in the present window of time. */
export interface Attempts {
  /** In the order of the subjects; this attempt is counted, too. */
  counts: readonly number[]
  /** Milliseconds since 1970. */
  windowEndsAt: number
}

/**
 * Counts an attempt of each subject: who or where it came from, as any text, which Redis sees only as a
 * hash of fixed length.
 *
 * The window is part of the key: a counter that lost its expiry, or a clock that is wrong, cannot keep
 * anybody out for longer than a window. Counters expire one window after theirs. Keys: attempts.
 */
export function countAttempts(
  keys: Keys,
  { subjects, windowSeconds }: { subjects: readonly string[]; windowSeconds: number },
  now: number,
): Update<Attempts> {
  const windowMs = 1000 * windowSeconds
  const window = Math.floor(now / windowMs)
  return {
    commands: subjects.flatMap((subject): Command[] => {
      const key = keys.attempts(hash(subject), window)
      return [
        ['SET', key, 0, 'EX', 2 * windowSeconds, 'NX'],
        ['INCR', key],
      ]
    }),
    readOnly: false,
    read: (replies) => ({
      counts: subjects.map((_, index) => Number(replies[2 * index + 1])),
      windowEndsAt: (window + 1) * windowMs,
    }),
  }
}

/** 128 bits: no two subjects share a counter. */
function hash(subject: string): string {
  return createHash('sha256').update(subject).digest('base64url').slice(0, 22)
}
