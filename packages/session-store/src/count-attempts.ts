import { createHash } from 'node:crypto'
import type { Command, Operation } from './command.ts'
import type { Keys } from './keys.ts'

/** The number of attempts in the current time window. */
export interface Attempts {
  /** One count for each subject, in their order, including this attempt. */
  counts: readonly number[]
  /** Milliseconds since 1970. */
  windowEndsAt: number
}

/**
 * Counts an attempt for each subject. A subject is any text, such as a user or an address; Redis gets only its
 * hash.
 *
 * The window is part of the key, so that a counter without an expiry or a wrong clock blocks nobody for longer
 * than a window. A counter expires two windows after its first attempt. Keys: attempts.
 */
export function countAttempts(
  keys: Keys,
  { subjects, windowSeconds }: { subjects: readonly string[]; windowSeconds: number },
  now: number,
): Operation<Attempts> {
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

/** 132 bits of SHA-256, enough that no two subjects share a counter. */
function hash(subject: string): string {
  return createHash('sha256').update(subject).digest('base64url').slice(0, 22)
}
