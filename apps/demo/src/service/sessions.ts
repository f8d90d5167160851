import { cluster, parseLocation } from '@onetrip/cluster'
import { SessionStore } from '@onetrip/session-store'
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
  const isCluster = parseLocation(redis).cluster !== undefined
  const location = isCluster ? cluster({ redis, partitions }) : { redis }
  const store = new SessionStore({
    ...location,
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
      await Promise.allSettled([...ended, forget(store)])
    }
  } finally {
    await store.close()
  }
}

function forget(store: SessionStore): Promise<void> {
  const { itemPrefix, items } = raceItems
  const names = Array.from({ length: items }, (_, index) => `${itemPrefix}${index + 1}`)
  return store.run({
    commands: store.keys.allPopular().map((key) => ['ZREM', key, ...names] as const),
    readOnly: false,
    read: () => undefined,
  })
}
