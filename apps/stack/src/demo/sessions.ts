import {
  createSessionStore,
  documentKeys,
  type Keys,
  partitionedKeys,
  type SessionStore,
} from '@onetrip/session-store'
import { locationOf, type RedisTarget } from '../address.ts'
import { messageOf, Problem } from '../problem.ts'

/** Few, so that they leave the shop's own items among the 100 that GET /items/popular lists. */
const ITEMS = 20

/** What the race looks at. The counts of these items are removed after it. */
export const raceItems = { items: ITEMS, itemPrefix: 'race-item-' }

/**
 * Does some work with sessions of `count` different users, which the lanes accept (`secret` signs their
 * tokens) and which are ended afterwards. So are the counts of the items.
 *
 * @throws Problem when Redis does not answer; what `work` throws.
 */
export async function withSessions<Result>(
  { redis, secret, count }: { redis: RedisTarget; secret: string; count: number },
  work: (tokens: readonly string[]) => Promise<Result>,
): Promise<Result> {
  // As the APIs have them.
  const partitions = Number(process.env.REDIS_PARTITIONS || 64)
  const keys = 'url' in redis ? documentKeys : partitionedKeys(partitions)
  const store = createSessionStore({
    ...(await locationOf(redis)),
    ...{ keys, tokens: { secrets: [secret] }, janitor: false },
  })
  try {
    await store.ready(5_000).catch((error: unknown) => {
      throw new Problem(`Redis cannot be used: ${messageOf(error)}`)
    })
    const names = Array.from({ length: count }, (_, index) => `demo-race-${index + 1}`)
    const sessions = await Promise.all(names.map((name) => store.login(name)))
    const tokens = sessions.map(({ token }) => token)
    try {
      return await work(tokens)
    } finally {
      // Redis may have gone, and the sessions with it or by their expiry.
      const ended = names.map((name) => store.endUserSessions(name))
      await Promise.allSettled([...ended, forget(store, keys)])
    }
  } finally {
    await store.close()
  }
}

function forget(store: SessionStore, keys: Keys): Promise<void> {
  const { itemPrefix, items } = raceItems
  const names = Array.from({ length: items }, (_, index) => `${itemPrefix}${index + 1}`)
  return store.run({
    commands: keys.allPopular().map((key) => ['ZREM', key, ...names] as const),
    readOnly: false,
    read: () => undefined,
  })
}
