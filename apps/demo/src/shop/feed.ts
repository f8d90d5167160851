import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Command, Operation, Reply } from '@onetrip/session-store'
import { shopKeys } from './keys.ts'
import { FeedBody, FeedPage, FeedPosition, feedQuery } from './schemas.ts'

// The feed: a list of the newest entries of all users, and a list per user.

export const MAX_ENTRIES = 1_000

/** Expiry of a user's feed after the last entry: 30 days. The feed of all users does not expire. */
const USER_FEED_SECONDS = 2_592_000

const PAGE_SIZE = 20

/**
 * KEYS: feed. ARGV: entry, maximum entries, expiry in seconds (0: none). Numbers the entry, adds it, and
 * trims the list to the maximum. Returns the number: that of the previous entry plus 1.
 */
const POST = `
local newest = redis.call('LINDEX', KEYS[1], 0)
local id = 1 + (newest and string.match(newest, '^%d+') or 0)
redis.call('LPUSH', KEYS[1], string.format('%.0f ', id) .. ARGV[1])
redis.call('LTRIM', KEYS[1], 0, ARGV[2] - 1)
if ARGV[3] ~= '0' then redis.call('EXPIRE', KEYS[1], ARGV[3]) end
return id`

/**
 * KEYS: feed. ARGV: entries to read, number of the last entry of the previous page (optional). The index of
 * an entry is the number of the newest entry minus its own, so entries added between two pages do not matter.
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
  /** Number in this feed. */
  id: number
}

/**
 * Adds an entry to the user's feed and to the feed of all users, in one round trip. After a failure in
 * between, the entry is only in the user's feed. Keys: both feeds, which are in different slots of a cluster.
 *
 * @returns The number in the feed of all users.
 */
function post(entry: Post): Operation<number> {
  const text = JSON.stringify(entry)
  const add = (key: string, seconds: number): Command => {
    return ['EVAL', POST, 1, key, text, MAX_ENTRIES, seconds]
  }
  return {
    commands: [add(shopKeys.feed(entry.user), USER_FEED_SECONDS), add(shopKeys.feed(), 0)],
    readOnly: false,
    read: ([, id]) => Number(id),
  }
}

/**
 * Reads a page of a feed, newest entry first. If entries are added between two pages, no entry is repeated or
 * skipped. Keys: feed.
 *
 * @param user Owner of the feed; undefined: the feed of all users.
 * @param before Number of the last entry of the previous page; undefined: first page.
 */
function readFeed(
  user: string | undefined,
  { limit, before }: { limit: number; before: string | undefined },
): Operation<Entry[]> {
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

export const feedRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { store } = app
  const tags = ['shop']

  app.post(
    '/feed',
    {
      schema: {
        operationId: 'post',
        summary: "Add an entry to the user's feed and to the feed of all users",
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
    const { limit = PAGE_SIZE, cursor } = query
    // Reads one more entry to know whether there is a next page.
    const read = await store.run(readFeed(user, { limit: limit + 1, before: cursor }))
    const entries = read.slice(0, limit)
    const last = entries.at(-1)
    return { entries, ...(last && read.length > limit && { nextCursor: String(last.id) }) }
  }

  const schema = {
    description: `A feed keeps up to ${MAX_ENTRIES} entries. If entries are added between two pages, no entry is repeated or skipped.`,
    tags,
    querystring: feedQuery(PAGE_SIZE),
    response: { 200: FeedPage },
  }
  app.get(
    '/feed',
    {
      schema: {
        ...schema,
        operationId: 'listFeed',
        summary: 'List the entries of all users, newest first',
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
        summary: "List the user's entries, newest first",
      },
    },
    async ({ user, query }) => page(user, query),
  )
}
