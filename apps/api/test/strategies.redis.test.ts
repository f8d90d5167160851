import { inspect } from 'node:util'
import { parseInfo, SessionStore, type SessionStoreOptions } from '@onetrip/session-store'
import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { testModel } from '../../../packages/session-store/test/model-tests.ts'
import { sendingBy, strategyNames } from '../src/strategies/index.ts'
import { secret } from './support.ts'

const server = redisOfThisFile()
const compared = strategyNames.filter((name) => name !== 'batch')

describe.each(compared)('%s', (strategy) => {
  /** A store without a janitor, closed when the current test ends. */
  function newStore(url: string, options: Partial<SessionStoreOptions> = {}) {
    const deadlineMs = 20_000
    const store = new SessionStore({
      tokens: { secrets: [secret] },
      janitor: 'elsewhere',
      deadlineMs,
      ...options,
      ...sendingBy(strategy, { redis: url, poolSize: 2, deadlineMs }),
    })
    onTestFinished(() => store.close())
    return store
  }

  async function readyStore(options: Partial<SessionStoreOptions> = {}) {
    const store = newStore(`unix://${server.socket}`, options)
    await store.ready()
    return store
  }

  testModel({ server, open: readyStore, runs: strategy === 'naive' ? 6 : 20 })

  test('a view is five commands, in one write or in one for each of them', async () => {
    const store = await readyStore()
    const { token } = await store.login('ada')
    await server.redis.config('RESETSTAT')
    await store.recordView(token, 'book')
    const stats = parseInfo(await server.redis.info('all'))
    const names = [...stats.keys()].flatMap(
      (name) => /^cmdstat_((?:z|h[gs]).*)/.exec(name)?.[1] ?? [],
    )
    expect(names.sort()).toEqual(['hget', 'zadd', 'zincrby', 'zremrangebyrank'])
    const connections = Number(stats.get('total_connections_received'))
    expect(connections).toBe(strategy === 'naive' ? 1 : 0)
    if (strategy === 'naive') return
    // The INFO is one more.
    const writes = Number(stats.get('total_reads_processed')) - 1
    expect(writes).toBe(strategy === 'sequential' ? 5 : 1)
  })

  test('concurrent calls read their own replies, and close waits for them', async () => {
    const store = await readyStore()
    const { token } = await store.login('ada')
    const views = Array.from({ length: 20 }, (_, item) =>
      store.recordView(token, `item ${item}`, { idempotencyKey: 'once' }),
    )
    const patch = store.patch(token, { cart: ['book'] })
    const closed = store.close()
    expect(await Promise.all(views)).toEqual(views.map(() => ({ user: 'ada', views: 1 })))
    expect(await patch).toEqual({ version: 1 })
    await closed
    await expect(store.login('eve')).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
  })

  test('reports the end of sessions', async () => {
    const store = await readyStore()
    const { token } = await store.login('ada')
    const ended = vi.fn()
    await store.watchSession(token, ended)
    await store.logout(token)
    await expect.poll(() => ended.mock.calls.length).toBe(1)
  })

  test('uses only the database of the URL, and shows no password', async () => {
    const inDatabase = newStore(`unix://${server.socket}?db=5`)
    await inDatabase.ready()
    await inDatabase.login('ada')
    expect(await server.redis.info('keyspace')).toMatch(/^# Keyspace\r\ndb5:.*\r\n$/)

    const { redis, socket } = server
    await redis.call('ACL', 'SETUSER', 'other', 'on', '>right', '+@all', '~*', '&*')
    for (const [url, cause] of [
      [`unix://${socket}?db=99`, 'DB index is out of range'],
      [`unix://other:a-wrong-password@localhost${socket}`, 'WRONGPASS'],
      ['unix:///nowhere/redis.sock', 'ENOENT'],
    ] as const) {
      const store = newStore(url)
      const failure = () => store.ready(300).catch((error: Error) => error)
      await expect.poll(async () => inspect(await failure())).toContain(cause)
      expect(inspect(await failure())).not.toContain('a-wrong')
      await expect(store.login('ada')).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
    }
    expect(await redis.info('keyspace')).toMatch(/^# Keyspace\r\ndb5:.*\r\n$/)
  })

  test('after a lost reply, the error says whether something may have been written', async () => {
    const redis = await redisForThisTest()
    const store = newStore(`unix://${redis.socket}`)
    await store.ready()
    redis.program.signal('SIGSTOP')
    const lost = store.run({
      commands: [
        ['HGET', 'login:', 'id'],
        ['ZINCRBY', 'viewed:', -1, 'book'],
      ],
      readOnly: false,
      read: () => undefined,
    })
    const settled = expect(lost).rejects.toMatchObject({ mayHaveWritten: strategy === 'pipeline' })
    redis.program.signal('SIGKILL')
    await settled
    await redis.restart()
    await expect.poll(() => store.popularItems().catch(String)).toEqual([])
  })
})
