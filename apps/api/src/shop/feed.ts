import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Command, Reply, Update } from '@onetrip/session-store'
import fp from 'fastify-plugin'
import { shopKeys } from './keys.ts'
import { FeedBody, FeedPage, FeedPosition, feedQuery } from './schemas.ts'

// The feed: a list of the newest entries of everybody, and one for each user.

/** Entries that a feed keeps. */
export const KEPT_ENTRIES = 1_000

/** Seconds that a user's feed is kept after the last entry: 30 days. The feed of everybody has no expiry. */
const USER_FEED_SECONDS = 2_592_000

const PAGE = 20

/**
 * KEYS: feed. ARGV: entry, entries kept, seconds kept (0: no expiry). Numbers the entry, adds it, and drops
 * those beyond the maximum. Replies the number, which is one more than that of the entry before.
 */
const POST = `
local newest = redis.call('LINDEX', KEYS[1], 0)
local id = 1 + (newest and string.match(newest, '^%d+') or 0)
redis.call('LPUSH', KEYS[1], string.format('%.0f ', id) .. ARGV[1])
redis.call('LTRIM', KEYS[1], 0, ARGV[2] - 1)
if ARGV[3] ~= '0' then redis.call('EXPIRE', KEYS[1], ARGV[3]) end
return id`

/**
 * KEYS: feed. ARGV: entries to read, number of the last entry of the page before (or none). An entry's
 * place follows from its number and that of the newest, however many were added meanwhile.
 */
const READ = `
local newest = redis.call('LINDEX', KEYS[1], 0)
if not newest then return {} end
local from = 0
if ARGV[2] then from = math.max(0, string.match(newest, '^%d+') - ARGV[2] + 1) end
return redis.call('LRANGE', KEYS[1], from, from + ARGV[1] - 1)`

interface Post {
  user: string
  text: string
  /** Milliseconds since 1970. */
  postedAt: number
}

interface Entry extends Post {
  /** Its number in this feed. */
  id: number
}

/**
 * Adds an entry to the feeds of the user and of everybody, in one round trip. A failure in between leaves it in
 * the first one only. Keys: feed of the user, feed of everybody, which are in different slots of a cluster.
 *
 * @returns its number in the feed of everybody.
 */
function post(entry: Post): Update<number> {
  const text = JSON.stringify(entry)
  const add = (key: string, seconds: number): Command => {
    return ['EVAL', POST, 1, key, text, KEPT_ENTRIES, seconds]
  }
  return {
    commands: [add(shopKeys.feed(entry.user), USER_FEED_SECONDS), add(shopKeys.feed(), 0)],
    readOnly: false,
    read: ([, id]) => Number(id),
  }
}

/**
 * A page of a feed, the newest entry first. Entries that come between two pages neither repeat nor skip any.
 * Keys: feed.
 *
 * @param user Whose feed; undefined: that of everybody.
 * @param before Number of the last entry of the page before; undefined: the first page.
 */
function readFeed(
  user: string | undefined,
  { limit, before }: { limit: number; before: string | undefined },
): Update<Entry[]> {
  return {
    commands: [['EVAL', READ, 1, shopKeys.feed(user), limit, ...(before ? [before] : [])]],
    readOnly: true,
    read: ([entries]) => (entries as readonly Reply[]).map((entry) => entryOf(String(entry))),
  }
}

function entryOf(stored: string): Entry {
  const end = stored.indexOf(' ')
  return { id: Number(stored.slice(0, end)), ...(JSON.parse(stored.slice(end + 1)) as Post) }
}

const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { store } = app
  const tags = ['shop']

  app.post(
    '/feed',
    {
      schema: {
        operationId: 'post',
        summary: "Add an entry to the user's feed and to that of everybody",
        tags,
        body: FeedBody,
        response: { 200: FeedPosition },
      },
    },
    async ({ user, body: { text } }) => {
      return { id: await store.run(post({ user, text, postedAt: Date.now() })) }
    },
  )

  async function page(user: string | undefined, query: { limit?: number; cursor?: string }) {
    const { limit = PAGE, cursor } = query
    // One entry more than the page holds says whether there is a next page.
    const read = await store.run(readFeed(user, { limit: limit + 1, before: cursor }))
    const entries = read.slice(0, limit)
    const last = entries.at(-1)
    return { entries, ...(last && read.length > limit && { nextCursor: String(last.id) }) }
  }

  const schema = {
    description: `Up to ${KEPT_ENTRIES} entries are kept. New entries between two pages neither repeat nor skip any.`,
    tags,
    querystring: feedQuery(PAGE),
    response: { 200: FeedPage },
  }
  app.get(
    '/feed',
    {
      schema: {
        ...schema,
        operationId: 'listFeed',
        summary: 'What everybody posted, newest first',
      },
    },
    async ({ query }) => page(undefined, query),
  )
  app.get(
    '/me/feed',
    {
      schema: {
        ...schema,
        operationId: 'listMyFeed',
        summary: 'What the user posted, newest first',
      },
    },
    async ({ user, query }) => page(user, query),
  )
}

export const feedRoutes = fp(routes, {
  name: 'feed-routes',
  dependencies: ['@onetrip/session-store'],
  encapsulate: true,
})
