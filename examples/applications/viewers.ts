// Unique viewers: has a user seen this item before? node viewers.ts [redis://host:port], see docs/applications.md
import { createHash, randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'

// A Bloom filter of 72 kB. Of 10^12 new viewers, it takes one for a viewer that it has.
const CAPACITY = 10_000
const BITS = Math.ceil((CAPACITY * -Math.log(1e-12)) / Math.LN2 ** 2)
const HASHES = Math.round((BITS / CAPACITY) * Math.LN2)

/** The bits of a viewer: several dozen, derived from two hashes (Dillinger and Manolios, 2004). */
function positions(viewer: string): number[] {
  const digest = createHash('sha256').update(viewer).digest()
  let [position, step] = [digest.readUIntBE(0, 6) % BITS, digest.readUIntBE(6, 6) % BITS]
  return Array.from({ length: HASHES }, (_, index) => {
    const bit = position
    position = (position + step) % BITS
    step = (step + index + 1) % BITS
    return bit
  })
}

/** The commands of a filter. Their replies are bits: those before `add`, or those that `find` reads. */
export interface Filter {
  names: readonly [add: string, find: string]
  add(viewer: string): Command[]
  find(viewer: string): Command[]
}

/** The article's way: a SETBIT or GETBIT for each bit. */
export const setbitFilter = (key: string): Filter => ({
  names: [`${HASHES} SETBITs`, `${HASHES} GETBITs`],
  add: (viewer) => positions(viewer).map((bit) => ['SETBIT', key, bit, 1]),
  find: (viewer) => positions(viewer).map((bit) => ['GETBIT', key, bit]),
})

/**
 * Better: BITFIELD sets or reads all bits in one command, which the article misses: SETBIT has no batch form. It takes
 * one round trip also without a pipeline, and nothing comes in between: of two first views of a user at the same time,
 * exactly one is new.
 */
export const bitfieldFilter = (key: string): Filter => ({
  names: ['BITFIELD SET', 'BITFIELD GET'],
  add: (viewer) => [
    ['BITFIELD', key, ...positions(viewer).flatMap((bit) => ['SET', 'u1', bit, 1])],
  ],
  find: (viewer) => [['BITFIELD', key, ...positions(viewer).flatMap((bit) => ['GET', 'u1', bit])]],
})

/** Whether a viewer was seen before: all its bits were set. Never false for one that was. */
export const isSeen = (replies: readonly unknown[]) => replies.flat().every((bit) => bit === 1)

if (import.meta.main) {
  const key = `example:viewers:${randomUUID()}`
  void run([`${key}:setbit`, `${key}:bitfield`], async (redis) => {
    for (const filter of [setbitFilter(`${key}:setbit`), bitfieldFilter(`${key}:bitfield`)]) {
      const [add, find] = filter.names
      let [views, asked, found] = [0, 0, 0]
      await compare(redis, `${add}, viewers`, 1, (send) =>
        send(filter.add(`viewer ${views++ % CAPACITY}`)),
      )
      const viewers = Math.min(views, CAPACITY)
      await compare(redis, `${find}, viewers`, 1, async (send) => {
        const name = asked % 2 === 0 ? 'viewer' : 'stranger'
        if (isSeen(await send(filter.find(`${name} ${asked++ % viewers}`)))) found += 1
      })
      console.log(
        `  ${viewers} viewers; asked for ${asked}, half of them strangers: found ${found}`,
      )
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
