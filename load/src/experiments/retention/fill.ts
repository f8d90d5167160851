import { randomBytes } from 'node:crypto'
import { articleKeys as keys } from '@onetrip/session-store'
import type { Redis } from 'ioredis'

const SESSIONS_PER_USER = 4
const VIEWS_PER_SESSION = 5
const ITEMS = 1_000
/** The oldest session was last seen this long ago. */
const SEEN_WITHIN_SECONDS = 10 * 24 * 3600
const PER_PIPELINE = 1_000

/**
 * Writes the records of sessions that were last seen in the past. The store's own calls would write the current time.
 *
 * @throws when Redis refuses a command; the reason of `signal`.
 */
export async function fillSessions(
  redis: Redis,
  sessions: number,
  signal: AbortSignal,
): Promise<void> {
  const now = Date.now() / 1_000
  for (let from = 0; from < sessions; from += PER_PIPELINE) {
    signal.throwIfAborted()
    const pipeline = redis.pipeline()
    for (let number = from; number < Math.min(sessions, from + PER_PIPELINE); number++) {
      const seen = now - (SEEN_WITHIN_SECONDS * (sessions - number)) / sessions
      const [id, user] = [idIssuedAt(seen), `user-${Math.floor(number / SESSIONS_PER_USER)}`]
      const views = Array.from({ length: VIEWS_PER_SESSION }, (_, view) => [
        seen - view,
        `item-${(number * VIEWS_PER_SESSION + view) % ITEMS}`,
      ])
      pipeline.hset(keys.login(id), id, user)
      pipeline.zadd(keys.recent(id), seen, id)
      pipeline.zadd(keys.sessions(user), seen, id)
      pipeline.zadd(keys.viewed(id), ...views.flat())
    }
    for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error
  }
}

/** A session id in the store's format: six bytes for the time of issue, the others random. */
function idIssuedAt(seconds: number): string {
  const bytes = randomBytes(24)
  bytes.writeUIntBE(Math.floor(seconds * 1_000), 0, 6)
  return bytes.toString('base64url')
}
