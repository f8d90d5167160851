import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseRedisUrl, SessionStore } from '@onetrip/session-store'
import { Redis } from 'ioredis'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type RedisUser, unixUrl, urlFor } from '../src/address.ts'
import { startRedis } from '../src/start-redis.ts'

let url: string
let secrets: string

beforeAll(async () => {
  const directory = await mkdtemp(join(tmpdir(), 'onetrip-users-'))
  secrets = join(directory, 'secrets')
  const socket = join(directory, 'redis.sock')
  url = unixUrl(socket)
  const redis = await startRedis({ socket, directory, secrets })
  return async () => {
    await redis.stop()
    await rm(directory, { recursive: true, force: true })
  }
})

async function storeForThisTest(): Promise<SessionStore> {
  const store = new SessionStore({
    redis: urlFor('api', url, secrets),
    tokens: { secrets: ['x'.repeat(32)] },
    janitor: 'elsewhere',
  })
  onTestFinished(() => store.close())
  await store.ready()
  return store
}

/** Opens a connection. Returns a function that sends a command and resolves with the reply, also for errors. */
function clientForThisTest(user?: RedisUser) {
  const { options } = parseRedisUrl(user ? urlFor(user, url, secrets) : url)
  const client = new Redis({
    ...options,
    protocol: 2,
    enableReadyCheck: false,
    retryStrategy: () => null,
  })
  onTestFinished(() => client.disconnect())
  client.on('error', () => {})
  return (name: string, ...args: (string | number)[]) =>
    client.call(name, ...args).catch((error: Error) => error.message)
}

const ended = { code: 'ONETRIP_UNKNOWN_SESSION' }

describe('the user api', () => {
  test('may run all updates of the store', async () => {
    const store = await storeForThisTest()
    await store.ping()
    const { token } = await store.login('ada')
    await store.recordView(token, 'tea')
    expect(await store.recordView(token, 'book')).toMatchObject({ user: 'ada' })
    expect(await store.checkToken(token)).toMatchObject({ user: 'ada' })
    expect(await store.viewedItems(token)).toHaveLength(2)
    expect(await store.popularItems()).not.toHaveLength(0)
    expect(await store.recentSessions()).not.toHaveLength(0)
    expect(await store.logout(token)).toBe(true)
    await expect(store.recordView(token, 'book')).rejects.toMatchObject(ended)
    const [first, second] = [await store.login('eve'), await store.login('eve')]
    await store.touch(first.token)
    const { sessions } = await store.userSessions(first.token)
    expect(sessions).toHaveLength(2)
    const [other] = sessions.filter(({ current }) => !current)
    expect(await store.revokeSession(first.token, other?.id ?? '')).toBe(true)
    await expect(store.checkToken(second.token)).rejects.toMatchObject(ended)
    expect(await store.logoutEverywhere(first.token)).toBe(1)
    expect(await store.endUserSessions('eve')).toBe(0)
    expect((await store.countAttempts(['eve'], 60)).counts).toHaveLength(1)
    const guest = await store.loginGuest()
    await store.patch(guest.token, { a: 1, b: 2 })
    const { token: mine } = await store.login('eve', { from: guest.token })
    const many = Array.from({ length: 62 }, (_, index) => [`field ${index}`, index])
    await store.patch(mine, { a: undefined, ...Object.fromEntries(many) }, { ifVersion: 1 })
    await expect(store.patch(mine, { c: 3, d: 4 })).rejects.toThrow('more than 64 fields')
    expect((await store.data(mine)).version).toBe(2)
    expect(await store.endUserSessions('eve')).toBe(1)
  })

  test('may run the janitor', async () => {
    const store = await storeForThisTest()
    const { token } = await store.login('ada')
    await store.recordView(token, 'tea')
    const often = { rescaleEverySeconds: 0.001, sweepEverySeconds: 0.001 }
    const janitor = store.janitor({ maxSessions: 0, sweepKeys: true, ...often })
    expect(await janitor.runOnce()).toMatchObject({ worked: true, sweeping: false })
    expect(await janitor.runOnce()).toMatchObject({ worked: true }) // tasks can be due from the second run on
    await expect(store.checkToken(token)).rejects.toMatchObject(ended)
  })
})

/** What a user may run, with a part of the reply, and what it may not run. */
test.for([
  [
    'api',
    { 'GET login:none': 'null', TIME: '1' },
    [
      ...['FLUSHALL', 'KEYS *', 'CONFIG SET dir /tmp', 'SHUTDOWN NOSAVE', 'ACL LIST', 'MONITOR'],
      ...['SET someone-elses 1', 'HGETALL risk:ada', 'LPUSH login:none x', 'SCRIPT FLUSH'],
      'EVAL return(redis.call("GET","someone-elses")) 0',
      'EVAL return(redis.call("FLUSHALL")) 0',
      ...['CLIENT TRACKING ON', 'SUBSCRIBE __redis__:invalidate', 'PUBLISH channel x'],
    ],
  ],
  [
    'operator',
    {
      'CLIENT LIST': 'user=operator',
      'CONFIG GET maxmemory-policy': 'noeviction',
      'LATENCY DOCTOR': 'Dave',
      'SLOWLOG LEN': '',
    },
    [
      ...['HGETALL login:', 'CONFIG SET maxmemory 1mb', 'CLIENT KILL TYPE normal', 'FLUSHALL'],
      'SHUTDOWN',
    ],
  ],
  [
    'exporter',
    { 'INFO ALL': 'used_memory:', 'SLOWLOG GET 1': '' },
    ['HGETALL login:', 'SCAN 0', 'CONFIG GET *', 'CLIENT LIST', 'SLOWLOG RESET', 'FLUSHALL'],
  ],
] as const)('the permissions of the user %s', async ([user, may, mayNot]) => {
  const send = clientForThisTest(user)
  const call = async (line: string) => {
    const [name = '', ...args] = line.split(' ')
    return String(await send(name, ...args))
  }
  for (const [line, part] of Object.entries<string>(may)) {
    const reply = await call(line)
    expect(reply, line).toContain(part)
    expect(reply, line).not.toMatch(/^NOPERM/)
  }
  for (const line of mayNot) expect(await call(line), line).toMatch(/NOPERM|ACL failure/)
})

test.each([
  [['PING'], 'NOAUTH'],
  [['INFO'], 'NOAUTH'],
  [['AUTH', 'api', 'guessed'], 'WRONGPASS'],
])('without a valid password, %j fails with %s', async ([name = '', ...args], error) => {
  const call = await clientForThisTest()
  expect(await call(name, ...args)).toContain(error)
})
