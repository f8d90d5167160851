// A flash sale that never sells one piece too many. node sale.ts [redis://host:port], see docs/applications.md
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'

const PIECES = 50
const BUYERS = 100

/** The commands of a sale. The reply to `buy` is the number of pieces left, or -1: sold out. */
export interface Sale {
  name: string
  open(pieces: number): readonly Command[]
  buy(buyer: string): Command
  left(): Command
}

/**
 * The article's way: DECR in a script. DECR alone would go below zero, and a GET before it would sell too many, because
 * concurrent buyers see the same number. A script runs alone. KEYS: pieces left.
 */
const DECR = `
if tonumber(redis.call('GET', KEYS[1]) or 0) < 1 then return -1 end
return redis.call('DECR', KEYS[1])`

export const decrSale = (key: string): Sale => ({
  name: 'DECR',
  open: (pieces) => [['SET', key, pieces]],
  buy: () => ['EVAL', DECR, 1, key],
  left: () => ['GET', key],
})

/**
 * Better: HINCRBY, with pieces and buyers in one hash. A buyer gets one piece, also if the request is repeated because
 * its reply was lost: with DECR it takes another piece. And it is known who bought. KEYS: sale. ARGV: buyer, time.
 */
const HINCRBY = `
local left = tonumber(redis.call('HGET', KEYS[1], 'left') or 0)
if redis.call('HEXISTS', KEYS[1], 'buyer ' .. ARGV[1]) == 1 then return left end
if left < 1 then return -1 end
redis.call('HSET', KEYS[1], 'buyer ' .. ARGV[1], ARGV[2])
return redis.call('HINCRBY', KEYS[1], 'left', -1)`

export const hincrbySale = (key: string): Sale => ({
  name: 'HINCRBY',
  open: (pieces) => [
    ['DEL', key],
    ['HSET', key, 'left', pieces],
  ],
  buy: (buyer) => ['EVAL', HINCRBY, 1, key, buyer, Date.now()],
  left: () => ['HGET', key, 'left'],
})

if (import.meta.main) {
  const key = `example:sale:${randomUUID()}`
  const buyers = Array.from({ length: BUYERS }, (_, index) => `${index}`)
  void run([`${key}:decr`, `${key}:hincrby`], async (redis) => {
    for (const sale of [decrSale(`${key}:decr`), hincrbySale(`${key}:hincrby`)]) {
      const opened = sale.open(PIECES)
      let sales = 0
      await compare(redis, `${sale.name} in a script, buyers`, BUYERS, async (send) => {
        const replies = await send([...opened, ...buyers.map(sale.buy), sale.left()])
        const sold = replies.slice(opened.length, -1).filter((left) => Number(left) >= 0).length
        if (sold !== PIECES || Number(replies.at(-1)) !== 0) throw new Error(`Sold ${sold} pieces`)
        sales += 1
      })
      console.log(`  ${sales} sales of ${PIECES} pieces to ${BUYERS} buyers: each sold ${PIECES}`)
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
