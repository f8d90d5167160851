import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { Redis } from 'ioredis'
import type { Operation, Reply } from '../src/command.ts'
import {
  articleKeys,
  type JanitorOptions,
  type Keys,
  type SessionStore,
  type SessionStoreOptions,
} from '../src/index.ts'
import { sendPipeline } from '../src/redis/write-frame.ts'
import { newStore, tokens } from './fixture.ts'
import { keysInParts } from './keys-in-parts.ts'

export const layouts = Object.entries({
  articles: articleKeys,
  'in parts': keysInParts(8),
})

/** A janitor that only ends sessions. */
export const evictOnly = {
  rescaleEverySeconds: Number.POSITIVE_INFINITY,
  sweepEverySeconds: Number.POSITIVE_INFINITY,
}

/** A janitor that starts a sweep of all keys with every run. */
export const sweepOnly = {
  rescaleEverySeconds: Number.POSITIVE_INFINITY,
  sweepEverySeconds: 0,
  sweepKeys: true,
}

/** A clock that only the test advances. All stores of a test share one. */
export class Clock {
  ms = 1_700_000_000_000

  get seconds(): number {
    return this.ms / 1000
  }

  pass(seconds: number): void {
    this.ms += 1000 * seconds
  }
}

/** A janitor that accepts any clock, such as `Clock`. */
export const anyClock = { maxClockSkewSeconds: Number.POSITIVE_INFINITY }

/** Makes the janitors of a store accept any clock. */
export function withAnyClock(store: SessionStore): SessionStore {
  const janitor = store.janitor.bind(store)
  return Object.assign(store, {
    janitor: (options?: JanitorOptions) => janitor({ ...anyClock, ...options }),
  })
}

/** Deletes the number of parts that the first start recorded. */
const forgetPartitions = (keys: Keys): Operation<void> => ({
  commands: [['HDEL', keys.janitorTasks(), 'parts']],
  readOnly: false,
  read: () => undefined,
})

export async function storeOn(
  socket: string,
  clock: Clock,
  options: Partial<SessionStoreOptions> = {},
): Promise<SessionStore> {
  const clocked = { ...tokens, clock: () => clock.ms }
  const store = newStore({ redis: `unix://${socket}`, tokens: clocked, ...options })
  await store.ready()
  await store.run(forgetPartitions(store.keys)) // tests compare all keys
  return withAnyClock(store)
}

/** A Redis for one test file, emptied before each test, with helpers for tests of retention. */
export function retentionServer() {
  const server = redisOfThisFile()
  return {
    get redis() {
      return server.redis
    },

    get socket() {
      return server.socket
    },

    storeForThisTest: (clock: Clock, options?: Partial<SessionStoreOptions>) =>
      storeOn(server.socket, clock, options),

    /** A store for the current test, and the clock that it uses. */
    async start(options?: Partial<SessionStoreOptions>) {
      const clock = new Clock()
      return { clock, store: await storeOn(server.socket, clock, options) }
    },

    async run<Result>(operation: Operation<Result>): Promise<Result> {
      const outcomes = await sendPipeline(server.redis, operation.commands)
      const error = outcomes.find((outcome) => outcome instanceof Error)
      if (error) throw error
      return operation.read(outcomes as readonly Reply[])
    },

    /** All keys, sorted, and their values. */
    async dump(): Promise<Record<string, unknown>> {
      const keys = (await server.redis.keys('*')).sort()
      const values = await Promise.all(keys.map((key) => contents(server.redis, key)))
      return Object.fromEntries(keys.map((key, index) => [key, values[index]]))
    },
  }
}

async function contents(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key)
  if (type === 'hash') return await redis.hgetall(key)
  return type === 'zset' ? await redis.zrange(key, '0', '-1', 'WITHSCORES') : await redis.get(key)
}

/** Creates sessions that were last seen one second apart, each with a view of its own item. */
export async function logIn(
  store: SessionStore,
  clock: Pick<Clock, 'pass'>,
  count: number,
): Promise<string[]> {
  const tokens: string[] = []
  for (let index = 0; index < count; index++) {
    clock.pass(1)
    const { token } = await store.login(`user ${index % 7}`)
    await store.recordView(token, `item ${index}`)
    tokens.push(token)
  }
  return tokens
}

/** Which of these sessions exist. */
export const present = (store: SessionStore, tokens: readonly string[]): Promise<boolean[]> =>
  Promise.all(
    tokens.map((token) =>
      store.checkToken(token).then(
        () => true,
        () => false,
      ),
    ),
  )

/** Runs the janitor until one sweep is complete. */
export async function sweep(
  store: SessionStore,
  batchSize = 3,
): Promise<{ swept: number; runs: number }> {
  const janitor = store.janitor({ ...sweepOnly, batchSize })
  let swept = 0
  for (let runs = 1; ; runs++) {
    const run = await janitor.runOnce()
    swept += run.swept
    if (!run.sweeping) return { swept, runs }
  }
}
