import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { ExpressSessionStore } from '../src/express.ts'
import { storeForThisTest } from './fixture.ts'

const codeOf = (error: unknown) => (error as { code?: string }).code
const codes = async (calls: Promise<unknown>[]) =>
  new Set(await Promise.all(calls.map((call) => call.then(() => 'ok', codeOf))))
const saved = (n: number) => ({ cookie: {}, n }) as never

test('if Redis is killed, calls say what may have happened; when it is back, the store works', async () => {
  const redis = await redisForThisTest({ config: { appendfsync: 'always' } })
  const adapter = new ExpressSessionStore(await storeForThisTest(redis.socket))
  await adapter.set('one', saved(1))
  redis.program.signal('SIGSTOP') // so that the calls are in flight when Redis dies
  const saves = codes([adapter.set('one', saved(2)), adapter.destroy('two')])
  const reads = codes([adapter.get('one')])
  redis.program.signal('SIGKILL')
  expect(await saves).toEqual(new Set(['ONETRIP_OUTCOME_UNKNOWN']))
  expect(await reads).toEqual(new Set(['ONETRIP_OUTCOME_UNKNOWN']))
  const refused = async () => await codes([adapter.set('one', saved(3))])
  await expect.poll(refused).toEqual(new Set(['ONETRIP_NOT_SENT']))
  await redis.restart()
  await expect.poll(() => codes([adapter.get('one')])).toEqual(new Set(['ok']))
  expect([1, 2]).toContain(((await adapter.get('one')) as unknown as { n: number }).n)
})

test('if Redis has no memory left, a session stays as it was', async () => {
  const redis = await redisForThisTest()
  const store = await storeForThisTest(redis.socket)
  const adapter = new ExpressSessionStore(store)
  await adapter.set('one', { cookie: {}, cart: ['book'] } as never)
  const limit = async (bytes: string) => {
    const commands = [['CONFIG', 'SET', 'maxmemory', bytes]] as const
    await store.run({ commands, readOnly: false, read: () => undefined })
  }
  await limit('1')
  await expect(adapter.set('one', saved(2))).rejects.toMatchObject({ code: 'ONETRIP_REFUSED' })
  await limit('0')
  expect(await adapter.get('one')).toEqual({ cookie: {}, cart: ['book'] })
})
