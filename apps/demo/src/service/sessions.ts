import { articleKeys, type Keys, SessionStore } from '@onetrip/session-store'
import { clusterSender, parseLocation, partitionedKeys } from '@onetrip/session-store/cluster'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'

/** Few, so that GET /items/popular, which lists 100 items, still shows the shop's own items. */
const ITEMS = 20

/** The items that a race views. Their counts are removed afterwards. */
export const raceItems = { items: ITEMS, itemPrefix: 'race-item-' }

/**
 * Calls `work` with tokens of `count` different users, signed with `secret`, which the lanes accept. Afterwards,
 * ends their sessions and removes the counts of the race's items.
 *
 * @throws Problem if Redis does not answer; errors of `work`.
 */
export async function withSessions<Result>(
  { redis, secret, count }: { redis: string; secret: string; count: number },
  work: (tokens: readonly string[]) => Promise<Result>,
): Promise<Result> {
  // The same key layout as in the APIs.
  const partitions = Number(process.env.REDIS_PARTITIONS || 64)
  const { cluster } = parseLocation(redis)
  const keys = cluster ? partitionedKeys(partitions) : articleKeys
  const store = new SessionStore({
    ...(cluster ? { sender: clusterSender(cluster) } : { redis }),
    keys,
    tokens: { secrets: [secret] },
    janitor: 'elsewhere',
  })
  try {
    await store.ready(5_000).catch((error: unknown) => {
      throw new Problem(`Cannot use Redis: ${messageOf(error)}`)
    })
    const names = Array.from({ length: count }, (_, index) => `demo-race-${index + 1}`)
    const sessions = await Promise.all(names.map((name) => store.login(name)))
    const tokens = sessions.map(({ token }) => token)
    try {
      return await work(tokens)
    } finally {
      // Errors are ignored: without Redis, the sessions are gone, too, or expire.
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
