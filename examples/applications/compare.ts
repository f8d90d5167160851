// What the four applications share: two ways of sending, and a program that compares them.
import { Redis } from 'ioredis'

export type Command = readonly [name: string, ...args: (string | number)[]]
/** Sends commands in one of the two ways. Rejects if one of them fails. */
export type Send = (commands: readonly Command[]) => Promise<unknown[]>

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
export async function compare(
  redis: Redis,
  what: string,
  units: number,
  task: (send: Send) => unknown,
) {
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
export async function run(keys: readonly string[], application: (redis: Redis) => Promise<void>) {
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
