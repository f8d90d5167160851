import { randomBytes } from 'node:crypto'
import type { Keys } from '@onetrip/session-store'
import { redisAddress } from '@onetrip/stack/address.ts'
import { encode, exchanger, rawSocket } from '../../drivers/redis/raw-connection.ts'

export interface FillOptions {
  sessions: number
  /** Each user has this many. */
  sessionsPerUser: number
  /** Items that each session has viewed. */
  viewsPerSession: number
  /** They were last seen within this many seconds before now. */
  withinSeconds: number
  signal: AbortSignal
  onProgress: (filled: number) => void
}

const AT_ONCE = 1_000
const ITEMS = 1_000
/** A session id of the store: when it was issued, then random bytes; as base64url. */
const [TIME_BYTES, ID_BYTES] = [6, 24]

/**
 * Puts sessions into Redis as if their users had logged in and viewed items, without the store: the
 * same records, thousand by thousand.
 *
 * @throws Problem when Redis does not take them; the reason of `signal`.
 */
export async function fillSessions(url: string, keys: Keys, options: FillOptions): Promise<void> {
  const { sessions, signal, onProgress } = options
  const socket = await rawSocket(redisAddress(url).options)
  const exchange = exchanger(socket)
  try {
    for (let from = 0; from < sessions; from += AT_ONCE) {
      signal.throwIfAborted()
      const commands = sessionCommands(keys, from, Math.min(AT_ONCE, sessions - from), options)
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

function sessionCommands(
  keys: Keys,
  from: number,
  count: number,
  { sessions, sessionsPerUser, viewsPerSession, withinSeconds }: FillOptions,
): Adding[] {
  const now = Date.now() / 1_000
  const bytes = randomBytes(count * ID_BYTES)
  const all = Array.from({ length: count }, (_, index) => {
    const number = from + index
    const seen = now - (withinSeconds * (sessions - number)) / sessions
    bytes.writeUIntBE(Math.floor(seen * 1_000), index * ID_BYTES, TIME_BYTES)
    return {
      id: bytes.toString('base64url', index * ID_BYTES, (index + 1) * ID_BYTES),
      user: `user-${Math.floor(number / sessionsPerUser)}`,
      seen,
      firstItem: number * viewsPerSession,
    }
  })
  const views = ({ seen, firstItem }: (typeof all)[number]) =>
    Array.from({ length: viewsPerSession }, (_, index) => [
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
      added: viewsPerSession,
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
