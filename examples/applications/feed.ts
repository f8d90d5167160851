// A feed: posts in the timelines of the followers, read by pages. node feed.ts [redis://host:port], see docs/applications.md
import { randomUUID } from 'node:crypto'
import { type Command, compare, run, type Send } from './compare.ts'

const FOLLOWERS = 100
const PAGE = 20
const KEPT = 1_000

/** A form of the feed: its commands. Entries are unique. */
export interface Feed {
  name: string
  /** Adds an entry to a timeline. */
  post(timeline: string, entry: string): readonly Command[]
  /** Reads a page after the newest `skip` entries. */
  page(timeline: string, skip: number): Command
  newestFirst(entries: string[]): string[]
}

/** The article's way: RPUSH adds at the end. Negative positions count from there. The list grows for ever. */
export const rpushFeed: Feed = {
  name: 'RPUSH',
  post: (timeline, entry) => [['RPUSH', timeline, entry]],
  page: (timeline, skip) => ['LRANGE', timeline, -skip - PAGE, -skip - 1],
  newestFirst: (entries) => entries.toReversed(),
}

/**
 * Better: LPUSH adds at the start: position 0 is the newest entry, and a page comes in the order in which it is shown.
 * LTRIM keeps only the newest entries, in the same round trip.
 */
export const lpushFeed: Feed = {
  name: 'LPUSH',
  post: (timeline, entry) => [
    ['LPUSH', timeline, entry],
    ['LTRIM', timeline, 0, KEPT - 1],
  ],
  page: (timeline, skip) => ['LRANGE', timeline, skip, skip + PAGE - 1],
  newestFirst: (entries) => entries,
}

/**
 * Reads the page after the entries that the reader has. Posts meanwhile move these to later positions, so the page is
 * what comes after the last one: none is repeated or skipped. Empty at the end, or if that entry has been trimmed.
 */
export async function nextPage(send: Send, feed: Feed, timeline: string, known: readonly string[]) {
  const last = known.at(-1)
  for (let skip = Math.max(0, known.length - 1); ; skip += PAGE - 1) {
    const [entries = []] = (await send([feed.page(timeline, skip)])) as string[][]
    const page = feed.newestFirst(entries)
    const older = last === undefined ? page : page.slice(page.indexOf(last) + 1 || PAGE)
    if (older.length > 0 || page.length < PAGE) return older
  }
}

if (import.meta.main) {
  const key = `example:feed:${randomUUID()}`
  const followers = Array.from({ length: FOLLOWERS }, (_, index) => `${key}:${index}`)
  void run(followers, async (redis) => {
    for (const feed of [rpushFeed, lpushFeed]) {
      let posts = 0
      await redis.unlink(...followers)
      await compare(redis, `${feed.name} to ${FOLLOWERS} timelines, posts`, 1, (send) => {
        posts += 1
        return send(followers.flatMap((timeline) => feed.post(timeline, `post ${posts}`)))
      })
      await compare(redis, `LRANGE of ${PAGE} entries, pages`, FOLLOWERS, (send) =>
        send(followers.map((timeline) => feed.page(timeline, 0))),
      )
      console.log(`  a timeline has ${await redis.llen(`${key}:0`)} entries`)
    }
  })
}
