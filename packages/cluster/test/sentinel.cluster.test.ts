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
    redis = await testSentinels({ password: sentinelPassword })
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

  test('the primary dies under load; nothing hangs, and 40 stores use the new primary', {
    timeout: 2 * failover.timeout,
  }, async () => {
    const [master, replica] = redis.servers
    // Without a remedy, ioredis gives up in about one of eleven (its failover detector and its connector race).
    const stores = Array.from({ length: 40 }, () => storeAt())
    await Promise.all(stores.map((one) => one.ready(failover.timeout)))
    const [store = expect.fail()] = stores
    const { token } = await store.login('ada')
    await store.recordView(token, 'book')
    expect(await master?.admin.wait(1, 10_000)).toBe(1)

    const viewed = () => outcomeOf(store.recordView(token, 'book'))
    const outcomes: string[] = []
    let running = true
    const viewer = async () => {
      while (running) {
        outcomes.push(await viewed())
        await delay(5)
      }
    }
    const viewing = Promise.all(Array.from({ length: 4 }, viewer))
    await expect.poll(() => outcomes.length).toBeGreaterThan(20)
    master?.program.signal('SIGKILL')
    await expect.poll(() => outcomes.at(-1)).not.toBe('ok')
    await expect.poll(viewed, failover).toBe('ok')
    running = false
    await viewing
    await expect.poll(() => redis.masterPort(), failover).toBe(replica?.port)
    const codes = new Set(outcomes)
    codes.delete('ok')
    expect([...codes].filter((code) => !known.has(code))).toEqual([])
    // A sentinel that reports the new primary later makes ioredis reconnect once more.
    const users = stores.map((one) => () => one.checkToken(token).then(({ user }) => user, String))
    const all = async () => new Set(await Promise.all(users.map((user) => user())))
    await expect.poll(all, failover).toEqual(new Set(['ada']))
  })

  const stopped = 'a master that is stopped is left as soon as the sentinels name another one'
  test(stopped, { timeout: 2 * failover.timeout }, async () => {
    const [master, replica] = redis.servers
    // So long that only a report of the sentinels can end the connection.
    const redisOf = longLivedConnection(primary().redis, 60_000)
    onTestFinished(() => redisOf.disconnect())
    redisOf.on('error', () => {})
    await redisOf.connect()
    expect(redisOf.stream).toMatchObject({ remotePort: master?.port })
    master?.program.signal('SIGSTOP')
    await expect
      .poll(
        () => [redisOf.status, (redisOf.stream as { remotePort?: number }).remotePort],
        failover,
      )
      .toEqual(['ready', replica?.port])
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
