import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  type Janitor,
  type JanitorOptions,
  articleKeys as keys,
  parseInfo,
  type RetentionEvent,
  retentionChannel,
  type SessionStore,
} from '../src/core/index.ts'
import { createJanitor } from '../src/core/retention/janitor.ts'
import { janitorLock } from '../src/core/retention/janitor-lock.ts'
import { untilServed } from '../src/core/sending/nodes.ts'
import { createRunner } from '../src/core/sending/runner.ts'
import { chooseSender } from '../src/core/sending/strategies.ts'
import { anyClock, Clock, evictOnly, logIn, retentionServer, storeOn } from './retention-fixture.ts'

const server = retentionServer()

/** A janitor whose events can be awaited. */
function janitorOf(store: SessionStore, options: JanitorOptions = {}) {
  const events: RetentionEvent[] = []
  let arrived = Promise.withResolvers<void>()
  const janitor = store.janitor({
    ...evictOnly,
    ...options,
    onProgress(event) {
      events.push(event)
      options.onProgress?.(event)
      arrived.resolve()
      arrived = Promise.withResolvers()
    },
  })
  return {
    ...janitor,
    events,
    /** Resolves with the first event of the type after the given number of events. */
    async event(type: RetentionEvent['type'], after = 0): Promise<RetentionEvent> {
      for (;;) {
        const found = events.slice(after).find((event) => event.type === type)
        if (found) return found
        await arrived.promise
      }
    },
  }
}

/** Blocks this process, as a long garbage collection would. */
function stall(seconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000 * seconds)
}

describe('one worker at a time', () => {
  test('a second janitor does nothing while the lock is held', async () => {
    const clock = new Clock()
    const store = await server.storeForThisTest(clock)
    await logIn(store, clock, 5)
    await server.redis.set(keys.janitor(), 'somebody else')
    const janitor = store.janitor({ ...evictOnly, maxSessions: 2 })
    expect(await janitor.runOnce()).toMatchObject({ worked: false, evicted: 0 })
    expect(await server.redis.get(keys.janitor())).toBe('somebody else')
    await server.redis.del(keys.janitor())
    expect(await janitor.runOnce()).toMatchObject({ worked: true, evicted: 3 })
    expect(await server.redis.exists(keys.janitor())).toBe(0)
  })

  test('several at once end different sessions, and the right number in total', async () => {
    const clock = new Clock()
    const stores = await Promise.all([1, 2, 3].map(() => server.storeForThisTest(clock)))
    await logIn(stores[0] as SessionStore, clock, 60)
    const options = { ...evictOnly, maxSessions: 7, batchSize: 2 }
    const runs = await Promise.all(stores.map((store) => store.janitor(options).runOnce()))
    expect(runs.reduce((sum, { evicted }) => sum + evicted, 0)).toBe(53)
    expect(await server.redis.zcard(keys.recent(''))).toBe(7)
  })

  test('another process takes over when the lock of a killed process expires', async () => {
    const clock = new Clock()
    const own = await redisForThisTest()
    const store = await storeOn(own.socket, clock)
    await logIn(store, clock, 10)
    const script = fileURLToPath(new URL('dying-janitor.ts', import.meta.url))
    const dying = spawn(process.execPath, [script, own.socket, '2'], { stdio: 'ignore' })
    onTestFinished(() => void dying.kill('SIGKILL'))
    expect(await once(dying, 'exit')).toEqual([null, 'SIGKILL'])

    const janitor = store.janitor({ ...evictOnly, maxSessions: 2 })
    const evicted = async () => (await janitor.runOnce()).evicted
    // One of the eight had ended before.
    await expect.poll(evicted).toBe(7)
  })

  test('a lock that expired and belongs to another worker is neither renewed nor released', async () => {
    const [late, next] = await Promise.all(
      [0.1, 60].map(async (lockSeconds) => {
        const sender = chooseSender({ url: `unix://${server.socket}` })
        const runner = createRunner(sender, { deadlineMs: 2_000, maxInFlight: 1_000 })
        onTestFinished(() => runner.close())
        await untilServed({ runner, keys }, 10_000)
        return janitorLock(runner, keys, lockSeconds)
      }),
    )
    expect(await late?.acquire()).toBe(true)
    await expect.poll(() => next?.acquire()).toBe(true)
    const owner = await server.redis.get(keys.janitor())
    expect(await late?.held()).toBe(false)
    await late?.release()
    expect(await server.redis.get(keys.janitor())).toBe(owner)
    expect(await next?.held()).toBe(true)
    await next?.release()
    expect(await server.redis.exists(keys.janitor())).toBe(0)
  })

  test('a worker that lost its lock stops before its next batch', async () => {
    const clock = new Clock()
    const store = await server.storeForThisTest(clock)
    await logIn(store, clock, 20)
    const janitor = janitorOf(store, {
      maxSessions: 0,
      batchSize: 2,
      lockSeconds: 1,
      onProgress: (event) => event.type === 'step' && stall(1.2),
    })
    expect(await janitor.runOnce()).toMatchObject({ evicted: 2, interrupted: 'lock lost' })
    expect(await server.redis.zcard(keys.recent(''))).toBe(18)
  })

  test('a worker renews its lock during a long run', async () => {
    const clock = new Clock()
    const store = await server.storeForThisTest(clock)
    await logIn(store, clock, 11)
    const janitor = janitorOf(store, {
      maxSessions: 0,
      batchSize: 1,
      lockSeconds: 5,
      onProgress: (event) => event.type === 'step' && stall(0.5),
    })
    const run = await janitor.runOnce()
    expect(run.evicted).toBe(11)
    expect(run.interrupted).toBeUndefined()
  })
})

describe('start and stop', () => {
  test('runs within an interval and after each one, until it is stopped', async () => {
    const clock = new Clock()
    const store = await server.storeForThisTest(clock)
    await logIn(store, clock, 3)
    const janitor = janitorOf(store, { maxSessions: 2, intervalSeconds: 0.01 })
    janitor.start()
    janitor.start() // once is enough
    expect(await janitor.event('run')).toMatchObject({ evicted: 1 })
    await logIn(store, clock, 3)
    await expect.poll(() => server.redis.zcard(keys.recent(''))).toBe(2)
    await janitor.stop()
    const told = janitor.events.length
    await logIn(store, clock, 3)
    expect(await server.redis.zcard(keys.recent(''))).toBe(5)
    expect(janitor.events).toHaveLength(told)
    janitor.start()
    await janitor.event('run', told)
    expect(await server.redis.zcard(keys.recent(''))).toBe(2)
  })

  test('stop waits for the batch in progress and releases the lock', async () => {
    const clock = new Clock()
    const store = await server.storeForThisTest(clock)
    await logIn(store, clock, 20)
    const ended: string[] = []
    let stopped: Promise<unknown> | undefined
    const janitor = janitorOf(store, {
      maxSessions: 0,
      batchSize: 3,
      onProgress: () => {
        stopped ??= janitor.stop().then(() => ended.push('stop'))
      },
    })
    const run = janitor.runOnce().finally(() => ended.push('run'))
    expect(await run).toMatchObject({ evicted: 3, interrupted: 'stopped' })
    await stopped
    expect(ended).toEqual(['run', 'stop'])
    expect(await server.redis.zcard(keys.recent(''))).toBe(17)
    expect(await server.redis.exists(keys.janitor())).toBe(0)
    expect(await janitor.runOnce()).toMatchObject({ evicted: 17 })
  })

  test('closing the store stops it', async () => {
    const store = await server.storeForThisTest(new Clock())
    const janitor = janitorOf(store, { intervalSeconds: 0.01 })
    janitor.start()
    await janitor.event('run')
    await store.close()
    expect(janitor.events.filter(({ type }) => type === 'failure')).toEqual([])
  })

  test('a store keeps only janitors that are started or running', async () => {
    const sender = chooseSender({ url: `unix://${server.socket}` })
    const runner = createRunner(sender, { deadlineMs: 20_000, maxInFlight: 1_000 })
    onTestFinished(() => runner.close())
    await untilServed({ runner, keys }, 10_000)
    const active = new Set<Janitor>()
    const defaults = { idleSeconds: 100, sweepKeys: false }
    const context = { runner, keys, now: () => 1_700_000_000, active, ...defaults }
    const janitor = createJanitor(context, anyClock)
    expect(active.size).toBe(0)
    const run = janitor.runOnce()
    expect(active).toEqual(new Set([janitor]))
    await run
    expect(active.size).toBe(0)
    janitor.start()
    await janitor.runOnce()
    expect(active).toEqual(new Set([janitor]))
    await janitor.stop()
    expect(active.size).toBe(0)
  })

  test('a failed run is published, and the next one works when Redis is back', async () => {
    const own = await redisForThisTest({ config: { appendfsync: 'always' } })
    const clock = new Clock()
    const store = await storeOn(own.socket, clock)
    await logIn(store, clock, 5)
    const janitor = janitorOf(store, { maxSessions: 2, intervalSeconds: 0.05 })
    own.program.signal('SIGKILL')
    await own.program.exited
    janitor.start()
    expect(await janitor.event('failure')).toMatchObject({ error: { name: 'StoreError' } })
    await own.restart()
    expect(await janitor.event('run')).toMatchObject({ evicted: 3 })
  })

  test('publishes on the diagnostics channel', async () => {
    const store = await server.storeForThisTest(new Clock())
    const messages: unknown[] = []
    const listen = (message: unknown) => messages.push(message)
    retentionChannel.subscribe(listen)
    onTestFinished(() => void retentionChannel.unsubscribe(listen))
    const janitor = janitorOf(store)
    await janitor.runOnce()
    expect(messages).toEqual(janitor.events)
    expect(messages).toMatchObject([{ type: 'run', worked: true, evicted: 0 }])
  })
})

test('the ACL user of the API has all permissions for this', async (context) => {
  const template = new URL('../../../apps/server-build/users.acl', import.meta.url)
  const [, rules = ''] = /^user api (.*(?:\n[ #].*)*)/m.exec(readFileSync(template, 'utf8')) ?? []
  const allowed = rules
    .split('\n')
    .filter((line) => !line.trim().startsWith('#'))
    .join(' ')
  const words = allowed.split(/\s+/).filter((word) => !word.startsWith('#'))
  const own = await redisForThisTest()
  const admin = new Redis(own.socket, { db: 5 })
  onTestFinished(() => admin.disconnect())
  const version = parseInfo(await admin.info('server')).get('redis_version') ?? ''
  if (version < '7.2') context.skip(`users.acl names commands that Redis ${version} does not have`)
  await admin.call('ACL', 'SETUSER', 'api', ...words, '>secret')

  const clock = new Clock()
  const url = `unix://api:secret@localhost${own.socket}?db=5`
  const store = await storeOn(own.socket, clock, { url })
  await logIn(store, clock, 10)
  const janitor = store.janitor({ maxSessions: 3, keptItems: 5, batchSize: 2, sweepKeys: true })
  expect(await janitor.runOnce()).toMatchObject({ evicted: 7 })
  clock.pass(86_400)
  await admin.hdel(keys.login(''), (await admin.hkeys(keys.login('')))[0] ?? '')
  const run = await janitor.runOnce()
  expect(run).toMatchObject({ itemsDropped: 10, swept: 2, sweeping: false })
})
