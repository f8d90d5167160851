import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, type TestContext, test } from 'vitest'
import { articleKeys, type Sender } from '../src/index.ts'
import { DurableEnds } from '../src/sessions/wait-for-durability.ts'
import { adminForThisTest, idOf, newStore, outcomeOf, readyStore } from './fixture.ts'

const sender: Sender = { name: 'own', send: async () => [], close: async () => {} }

test.for([
  [{ durable: 'everywhere' as 'disk' }, 'durable must be one of disk, replicas'],
  [{ redis: undefined, sender, durable: 'disk' as const }, 'durable needs redis: a sender cannot'],
] as const)('the options %j are refused', ([options, message]) => {
  expect(() => newStore({ redis: 'redis://127.0.0.1', ...options })).toThrow(message)
})

test.for([
  ['disk', ['CONFIG', 'SET', 'appendonly', 'no'], "durable: 'disk' needs Redis 7.2"],
  ['disk', ['ACL', 'SETUSER', 'default', '-waitaof'], 'the permission +waitaof'],
  ['disk', ['CONFIG', 'SET', 'appendfsync', 'no'], 'appendfsync everysec or always'],
  ['replicas', ['PING', ''], "durable: 'replicas' needs a replica that is connected"],
] as const)('durable: %s after %j stops the start', async ([durable, [name, ...args], message]) => {
  const { socket } = await redisForThisTest()
  const redis = `unix://${socket}`
  await newStore({ redis }).ready()
  await adminForThisTest(socket).call(name, ...args)
  const store = newStore({ redis, durable, deadlineMs: 1_000 })
  await expect(store.ready()).rejects.toMatchObject({
    code: 'ONETRIP_NOT_DURABLE',
    message: expect.stringContaining(message),
  })
})

/** A store with `durable: 'disk'`, and a switch for whether Redis writes to its disk. */
async function durableStore({ skip }: TestContext) {
  const { socket } = await redisForThisTest({ config: { appendfsync: 'always' } })
  const admin = adminForThisTest(socket)
  const [known] = (await admin.call('COMMAND', 'INFO', 'WAITAOF')) as unknown[]
  skip(known === null, 'this Redis is older than 7.2')
  const redis = `unix://${socket}`
  const store = await readyStore({ redis, durable: 'disk', deadlineMs: 1_000 })
  const setDisk = (works: boolean) => admin.config('SET', 'appendfsync', works ? 'always' : 'no')
  return { store, admin, setDisk, redis }
}

test('all calls that end sessions wait, and say what is known; repeated, they wait again', async (context) => {
  const { store, setDisk } = await durableStore(context)
  const login = async (user: string) => (await store.login(user)).token
  const tokens = await Promise.all(
    ['ada', 'bob', 'bob', 'cyn', 'cyn', 'dan', 'dan', 'eve'].map(login),
  )
  const [ada = '', bob = '', bobs = '', cyn = '', , dan = ''] = tokens
  const calls = [
    () => store.logout(ada),
    () => store.revokeSession(bob, idOf(bobs)),
    () => store.endOtherSessions(cyn),
    () => store.logoutEverywhere(dan),
    () => store.endUserSessions('eve'),
  ]
  await setDisk(false)
  for (const _ of ['first', 'repeated']) {
    const failed = await Promise.allSettled(calls.map((call) => call()))
    for (const { reason } of failed as PromiseRejectedResult[]) {
      expect(reason).toMatchObject({ code: 'ONETRIP_NOT_DURABLE', statusCode: 503 })
      expect(reason).toMatchObject({ mayHaveWritten: true, retrySafe: true })
    }
  }
  // They ended at once, and other calls do not wait.
  const left = await Promise.all(tokens.map((token) => outcomeOf(store.checkToken(token))))
  expect(left.map((outcome) => outcome === 'ok')).toEqual([
    false,
    true,
    false,
    true,
    false,
    false,
    false,
    false,
  ])
  await setDisk(true)
  const repeated = await Promise.allSettled(calls.map((call) => call()))
  expect(
    repeated.map(({ status, ...settled }) => ('value' in settled ? settled.value : status)),
  ).toEqual(
    [false, false, 0, 'rejected', 0], // the session of logoutEverywhere has ended
  )
})

test('concurrent ends share waits', async (context) => {
  const { store, admin } = await durableStore(context)
  const sessions = await Promise.all(Array.from({ length: 100 }, () => store.login('ada')))
  await admin.config('RESETSTAT')
  const ended = await Promise.all(sessions.map(({ token }) => store.logout(token)))
  expect(ended).toEqual(new Array(100).fill(true))
  const [, calls] = /cmdstat_waitaof:calls=(\d+)/.exec(await admin.info('commandstats')) ?? []
  expect(Number(calls)).toBeLessThan(10)
})

test('an end is not durable if the connection is another one than before: Redis may have restarted', async (context) => {
  const { admin, redis } = await durableStore(context)
  const ends = new DurableEnds({
    redis,
    keys: articleKeys,
    maxInFlight: 10,
    deadlineMs: 20_000,
    durable: 'disk',
  })
  onTestFinished(() => ends.runner.close())
  await ends.ready(20_000)
  const lost = ends.after(async () => {
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal')
    const connections = () => ends.runner.sender.connections?.()
    await expect.poll(connections).toMatchObject({ opened: 2, ready: 1 })
  })
  await expect(lost).rejects.toMatchObject({ code: 'ONETRIP_NOT_DURABLE' })
  await ends.after(() => Promise.resolve())
})
