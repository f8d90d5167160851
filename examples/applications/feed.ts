// A feed: posts in the timelines of the followers, read by pages. node feed.ts [redis://host:port], see docs/applications.md
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'

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

// From here on, all four files are the same.

type Command = readonly [name: string, ...args: (string | number)[]]
type Send = (commands: readonly Command[]) => Promise<unknown[]>

/** A round trip for each command. */
async function oneCommandATrip(redis: Redis, commands: readonly Command[]): Promise<unknown[]> {
  return await Array.fromAsync(commands, ([name, ...args]) => redis.call(name, ...args))
}

/** One round trip for all commands. Checks each reply: `exec` also resolves if commands fail. */
export async function onePipeline(redis: Redis, commands: readonly Command[]): Promise<unknown[]> {
  const pipeline = redis.pipeline()
  for (const [name, ...args] of commands) pipeline.call(name, ...args)
  const results = (await pipeline.exec()) ?? []
  return results.map(([error, reply]) => {
    if (error) throw error
    return reply
  })
}

const stop = new AbortController()

/** Repeats a task for half a second in both ways. Prints the rates; a task counts as `units`. */
async function compare(redis: Redis, what: string, units: number, task: (send: Send) => unknown) {
  process.stdout.write(what.padEnd(40))
  for (const way of [oneCommandATrip, onePipeline]) {
    const begun = performance.now()
    let [done, ms] = [0, 0]
    for (; ms < 500; ms = performance.now() - begun, done += units) {
      stop.signal.throwIfAborted()
      await task((commands) => way(redis, commands))
    }
    process.stdout.write(`${Math.round((1_000 * done) / ms).toLocaleString('en')}/s`.padStart(22))
  }
  console.log()
}

/** Connects, runs the application, and removes its keys. */
async function run(keys: readonly string[], application: (redis: Redis) => Promise<void>) {
  const errors: Error[] = []
  const url = process.argv[2] || process.env.REDIS_URL || 'redis://127.0.0.1:6379'
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => stop.abort(new Error(name)))
  try {
    if (!/^(rediss?|unix):\/\/|^\//.test(url)) throw new Error('This is no URL of a Redis')
    const options = { lazyConnect: true, connectTimeout: 2_000, commandTimeout: 5_000 }
    const redis = new Redis(url, { ...options, retryStrategy: () => null })
    redis.on('error', (error) => errors.push(error))
    await redis.connect()
    console.log(''.padEnd(40), 'one command a trip'.padStart(21), 'one pipeline'.padStart(21))
    await application(redis).finally(() => redis.unlink(...keys).finally(() => redis.disconnect()))
  } catch (error) {
    const { message } = errors[0] ?? (error as Error)
    console.error(`\n${message}. The URL of Redis is the first argument or in REDIS_URL.`)
    process.exitCode = 1
  }
}
