// Risk features of a payment's user, card, device and network. node risk.ts [redis://host:port], see docs/applications.md
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'

type Features = Readonly<Record<string, number>>

/** The article's way of reading: HGETALL, here of the four keys of a payment. */
export async function features(send: Send, keys: readonly string[]): Promise<Features[]> {
  const replies = (await send(keys.map((key) => ['HGETALL', key]))) as string[][]
  return replies.map((flat) =>
    Object.fromEntries(flat.flatMap((name, at) => (at % 2 ? [] : [[name, Number(flat[at + 1])]]))),
  )
}

/** The article's first level: a cache in this process. What it has is at most `maxAgeMs` old. */
export function localCache(maxAgeMs: number): typeof features {
  let [cache, until] = [new Map<string, Features>(), 0]
  return async (send, keys) => {
    if (performance.now() >= until) [cache, until] = [new Map(), performance.now() + maxAgeMs]
    const own = cache // of this call: another one may begin the next cache meanwhile
    const missing = keys.filter((key) => !own.has(key))
    const read = missing.length > 0 ? await features(send, missing) : []
    for (const [index, key] of missing.entries()) own.set(key, read[index] ?? {})
    return keys.map((key) => own.get(key) ?? {})
  }
}

/** Records a payment by HSET of what HGETALL read. Concurrent payments read the same: only one counts. */
export async function recordByHset(send: Send, keys: readonly string[], cents: number) {
  const known = await features(send, keys)
  const sums = known.map(({ payments = 0, spent = 0 }) => [payments + 1, spent + cents] as const)
  await send(sums.map(([n, sum], at) => ['HSET', keys[at] ?? '', 'payments', n, 'spent', sum]))
}

/**
 * Better: HINCRBY. Redis adds, so nothing is read before and no payment is lost. And payments can be added up here and
 * written later, the article's asynchronous writing. A crash loses those that are not written yet.
 */
export function writeBehind() {
  const pending = new Map<string, [key: string, name: string, by: number]>()
  return {
    add(key: string, name: string, by: number) {
      const [, , before = 0] = pending.get(`${key} ${name}`) ?? []
      pending.set(`${key} ${name}`, [key, name, before + by])
    },
    async flush(send: Send) {
      const sums = [...pending.values()]
      pending.clear() // also if sending fails: sent again, they could count twice
      await send(sums.map((sum) => ['HINCRBY', ...sum]))
    },
  }
}

if (import.meta.main) {
  const [id, cached, later] = [randomUUID(), localCache(100), writeBehind()]
  const keys = ['user', 'card', 'device', 'network'].map((kind) => `example:risk:${id}:${kind}`)
  void run(keys, async (redis) => {
    await compare(redis, 'HGETALL of 4 keys, checks', 1, (send) => features(send, keys))
    await compare(redis, '  with a local cache, checks', 1, (send) => cached(send, keys))
    await compare(redis, 'HGETALL and HSET, payments', 1, (send) => recordByHset(send, keys, 5))
    for (const size of [1, 100]) {
      await compare(redis, `HINCRBY, ${size} together, payments`, size, (send) => {
        for (const key of Array.from({ length: size }, () => keys).flat()) {
          later.add(key, 'payments', 1)
          later.add(key, 'spent', 5)
        }
        return later.flush(send)
      })
    }
    console.log('  recorded of the card:', await redis.hgetall(keys[1] ?? ''))
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
