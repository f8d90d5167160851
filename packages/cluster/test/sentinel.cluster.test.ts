import { setTimeout as delay } from 'node:timers/promises'
import { longLivedConnection, type SessionStore } from '@onetrip/session-store'
import { MASTER_NAME, type TestSentinels, testSentinels } from '@onetrip/stack/testing/sentinel.ts'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { newStore, outcomeOf } from '../../session-store/test/fixture.ts'
import { sentinel as toPrimary } from '../src/index.ts'

/** Sentinels that a busy machine holds up for two seconds wait for thirty (their TILT mode). */
const failover = { timeout: 90_000 }

describe('sentinels with a password', () => {
  let redis: TestSentinels
  const sentinelPassword = 'of-the-sentinels'

  beforeEach(async () => {
    redis = await testSentinels({ password: sentinelPassword, replicas: 3 })
  })
  afterEach(() => redis.stop())

  function storeAt(deadlineMs = 2_000): SessionStore {
    return newStore({ ...primary(), deadlineMs })
  }
  const addresses = () => redis.sentinels.map(({ port }) => `127.0.0.1:${port}`)
  const primary = () =>
    toPrimary({ redis: { nodes: addresses(), name: MASTER_NAME, sentinelPassword } })

  test('finds the primary, even if a sentinel is down', async () => {
    const printed = vi.spyOn(console, 'error')
    onTestFinished(() => printed.mockRestore())
    redis.sentinels[0]?.program.signal('SIGKILL')
    await redis.sentinels[0]?.program.exited
    const store = storeAt(20_000)
    await store.ready()
    const { token } = await store.login('ada')
    expect(await store.recordView(token, 'book')).toMatchObject({ views: 1 })
    expect(await store.ping()).toEqual([{ node: `127.0.0.1:${await redis.masterPort()}` }])
    expect(printed.mock.calls).toEqual([])
  })

  test('three primaries die while a sentinel hangs; no call hangs, and 40 stores use the last server', {
    timeout: 4 * failover.timeout,
  }, async () => {
    const { servers, sentinels, agree, masterPort } = redis
    // ioredis gives up for good if it learns of a new primary while it asks a sentinel for the primary: then it asks long.
    const stores = Array.from({ length: 40 }, () => storeAt())
    await Promise.all(stores.map((one) => one.ready(failover.timeout)))
    const [store = expect.fail()] = stores
    const { token } = await store.login('ada')
    const viewIn = (one: SessionStore) => outcomeOf(one.recordView(token, 'book'))
    expect(await servers[0]?.admin.wait(3, 10_000)).toBe(3)

    const outcomes: string[] = []
    let running = true
    const viewer = async () => {
      while (running) {
        outcomes.push(await viewIn(store))
        await delay(5)
      }
    }
    const viewing = Promise.all(Array.from({ length: 4 }, viewer))
    sentinels[2]?.program.signal('SIGSTOP')
    const died = new Set<number>()
    while (died.size < 3) {
      await expect.poll(() => outcomes.at(-1)).toBe('ok')
      const port = await masterPort()
      died.add(port)
      const { program } = servers.find((one) => one.port === port) ?? expect.fail()
      program.signal('SIGKILL')
      await program.exited
      await expect.poll(() => outcomes.at(-1)).not.toBe('ok')
      // A sentinel that reports the new primary later makes ioredis reconnect once more.
      await expect.poll(async () => !died.has(await masterPort()) && agree(2), failover).toBe(true)
      const all = async () => new Set(await Promise.all(stores.map(viewIn)))
      await expect.poll(all, failover).toEqual(new Set(['ok']))
    }
    running = false
    await viewing
    const codes = new Set(outcomes)
    codes.delete('ok')
    expect([...codes].filter((code) => !known.has(code))).toEqual([])
  })

  const stopped = 'a master that is stopped is left as soon as the sentinels name another one'
  test(stopped, { timeout: 2 * failover.timeout }, async () => {
    const [master, ...replicas] = redis.servers
    // So long that only a report of the sentinels can end the connection.
    const redisOf = longLivedConnection(primary().redis, 60_000)
    onTestFinished(() => redisOf.disconnect())
    redisOf.on('error', () => {})
    await redisOf.connect()
    expect(redisOf.stream).toMatchObject({ remotePort: master?.port })
    master?.program.signal('SIGSTOP')
    const port = () => (redisOf.stream as { remotePort?: number }).remotePort
    const moved = () => redisOf.status === 'ready' && replicas.some((one) => one.port === port())
    await expect.poll(moved, failover).toBe(true)
  })
})

/** The expected errors: those of a connection, and `READONLY` or `LOADING` while roles change. */
const known = new Set(['ONETRIP_NOT_SENT', 'ONETRIP_OUTCOME_UNKNOWN', 'ONETRIP_REFUSED'])

test('without a reachable sentinel, ready() fails with the reason in bounded time', async () => {
  const store = newStore(toPrimary({ redis: `redis+sentinel://127.0.0.1:1/${MASTER_NAME}` }))
  await expect(store.ready(500)).rejects.toMatchObject({
    code: 'ONETRIP_NOT_SENT',
    cause: { message: expect.stringContaining('All sentinels are unreachable') },
  })
})

test.each([
  [{ nodes: ['redis:1'], name: '' }, 'sentinel needs the name of the primary'],
  [{ nodes: ['redis'], name: 'm', passwort: 'x' }, 'redis has no option passwort:'],
  [{ nodes: ['redis 1'], name: 'm' }, 'sentinel: node 1 must look like host:port'],
  [{ nodes: ['redis'], name: 'm', sentinelUsername: 'x' }, 'needs a sentinelPassword'],
  [{ nodes: ['redis'], name: 'm', tls: { ca: 'x' } }, 'tls has an unusable ca, cert or key'],
])('%j is refused: %s', (redis, message) => {
  const create = () => toPrimary({ redis })
  expect(create).toThrow(TypeError)
  expect(create).toThrow(message)
})
