import { randomBytes } from 'node:crypto'
import type { Keys } from '@onetrip/session-store'
import { redisAddress } from '@onetrip/stack/address.ts'
import { encode, exchanger, rawSocket } from '../../drivers/redis/raw-connection.ts'

interface FillOptions {
  sessions: number
  signal: AbortSignal
  onProgress: (filled: number) => void
}

// A user has a few devices, and has looked at a few items.
const SESSIONS_PER_USER = 4
const VIEWS_PER_SESSION = 5
const ITEMS = 1_000
/** Sessions were last seen within this time before now. */
const SEEN_WITHIN_SECONDS = 10 * 24 * 3600
const AT_ONCE = 1_000
/** A session id of the store: when it was issued, then random bytes; as base64url. */
const [TIME_BYTES, ID_BYTES] = [6, 24]

/**
 * Puts sessions into Redis as if their users had logged in and viewed items, without the store: the
 * same records, thousand by thousand.
 *
 * @throws Problem when Redis does not take them; the reason of `signal`.
 */
export async function fillSessions(
  url: string,
  keys: Keys,
  { sessions, signal, onProgress }: FillOptions,
): Promise<void> {
  const socket = await rawSocket(redisAddress(url).options)
  const exchange = exchanger(socket)
  try {
    for (let from = 0; from < sessions; from += AT_ONCE) {
      signal.throwIfAborted()
      const commands = sessionCommands(keys, from, sessions)
      await exchange(
        Buffer.concat(commands.map(({ command }) => encode(command))),
        Buffer.from(commands.map(({ added }) => `:${added}\r\n`).join('')),
      )
      onProgress(from)
    }
  } finally {
    socket.destroy()
  }
}

interface Adding {
  command: readonly (string | number)[]
  /** What it replies: how many are new. */
  added: number
}

type Entry = { key: string; values: readonly [string | number, string | number] }

/** The commands of the next thousand sessions, from the one with the number `from`. */
function sessionCommands(keys: Keys, from: number, sessions: number): Adding[] {
  const now = Date.now() / 1_000
  const count = Math.min(AT_ONCE, sessions - from)
  const bytes = randomBytes(count * ID_BYTES)
  const all = Array.from({ length: count }, (_, index) => {
    const number = from + index
    const seen = now - (SEEN_WITHIN_SECONDS * (sessions - number)) / sessions
    bytes.writeUIntBE(Math.floor(seen * 1_000), index * ID_BYTES, TIME_BYTES)
    return {
      id: bytes.toString('base64url', index * ID_BYTES, (index + 1) * ID_BYTES),
      user: `user-${Math.floor(number / SESSIONS_PER_USER)}`,
      seen,
      firstItem: number * VIEWS_PER_SESSION,
    }
  })
  const views = ({ seen, firstItem }: (typeof all)[number]) =>
    Array.from({ length: VIEWS_PER_SESSION }, (_, index) => [
      seen - index,
      `item-${(firstItem + index) % ITEMS}`,
    ])
  return [
    ...grouped(
      'HSET',
      all.map(({ id, user }) => ({ key: keys.login(id), values: [id, user] })),
    ),
    ...grouped(
      'ZADD',
      all.map(({ id, seen }) => ({ key: keys.recent(id), values: [seen, id] })),
    ),
    ...grouped(
      'ZADD',
      all.map(({ id, user, seen }) => ({ key: keys.sessions(user), values: [seen, id] })),
    ),
    ...all.map((session) => ({
      command: ['ZADD', keys.viewed(session.id), ...views(session).flat()],
      added: VIEWS_PER_SESSION,
    })),
  ]
}

/** One command for each key. */
function grouped(name: 'HSET' | 'ZADD', entries: readonly Entry[]): Adding[] {
  return [...Map.groupBy(entries, ({ key }) => key)].map(([key, list]) => ({
    command: [name, key, ...list.flatMap(({ values }) => values)],
    added: list.length,
  }))
}
