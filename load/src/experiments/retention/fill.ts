import { randomBytes } from 'node:crypto'
import { documentKeys, type Keys, partitionedKeys } from '@onetrip/session-store'
import type { Redis } from 'ioredis'

/** The layouts of the keys. */
export const layouts = { documents: documentKeys, partitioned: partitionedKeys() }

// A user has a few devices, and has looked at a few items.
const SESSIONS_PER_USER = 4
const VIEWS_PER_SESSION = 5
const ITEMS = 1_000
/** Sessions were last seen within this time before now. */
const SEEN_WITHIN_SECONDS = 10 * 24 * 3600
const PER_PIPELINE = 1_000

/**
 * Writes the records of sessions whose users logged in and viewed items in the past: the store itself would
 * write them as of now.
 *
 * @throws when Redis refuses a command; the reason of `signal`.
 */
export async function fillSessions(
  redis: Redis,
  keys: Keys,
  sessions: number,
  { signal, onProgress }: { signal: AbortSignal; onProgress: (filled: number) => void },
): Promise<void> {
  const now = Date.now() / 1_000
  for (let from = 0; from < sessions; from += PER_PIPELINE) {
    signal.throwIfAborted()
    const some = Array.from({ length: Math.min(PER_PIPELINE, sessions - from) }, (_, index) => {
      const number = from + index
      const seen = now - (SEEN_WITHIN_SECONDS * (sessions - number)) / sessions
      const views = Array.from({ length: VIEWS_PER_SESSION }, (_, view) => [
        seen - view,
        `item-${(number * VIEWS_PER_SESSION + view) % ITEMS}`,
      ])
      const user = `user-${Math.floor(number / SESSIONS_PER_USER)}`
      return { id: idIssuedAt(seen), user, seen, views }
    })
    // One command for each key: one for each record takes twice as long.
    const pipeline = redis.pipeline()
    for (const [key, list] of Map.groupBy(some, ({ id }) => keys.login(id))) {
      pipeline.hset(key, ...list.flatMap(({ id, user }) => [id, user]))
    }
    const lists = [
      ...Map.groupBy(some, ({ id }) => keys.recent(id)),
      ...Map.groupBy(some, ({ user }) => keys.sessions(user)),
    ]
    for (const [key, list] of lists) {
      pipeline.zadd(key, ...list.flatMap(({ id, seen }) => [seen, id]))
    }
    for (const { id, views } of some) pipeline.zadd(keys.viewed(id), ...views.flat())
    for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error
    onProgress(from)
  }
}

/** As the store makes them: six bytes say when it was issued, the others are random. */
function idIssuedAt(seconds: number): string {
  const bytes = randomBytes(24)
  bytes.writeUIntBE(Math.floor(seconds * 1_000), 0, 6)
  return bytes.toString('base64url')
}
