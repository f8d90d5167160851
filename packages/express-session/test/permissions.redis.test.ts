import { readFileSync } from 'node:fs'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { ExpressSessionStore } from '../src/express.ts'
import { storeForThisTest } from './fixture.ts'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const [, rule = ''] = /^ {2}`(~express:\* .*)`$/m.exec(readme) ?? []
/** What the store itself needs to connect. */
const STORE =
  '&login:* ~login:* ~recent:* ~viewed:* +type +publish +info +ping +hello +client|setinfo'

test('a Redis user with the permissions of the README can do everything but read all sessions', async () => {
  const redis = await redisForThisTest()
  const admin = new Redis(redis.socket)
  onTestFinished(() => admin.disconnect())
  await admin.call('ACL', 'SETUSER', 'admin', 'on', 'nopass', '~*', '&*', '+@all')
  await admin.call('AUTH', 'admin', 'any')
  await admin.set('sess:old', '{"cookie":{},"user":"ada"}')
  const permissions = `${STORE} ${rule} ~sess:*`.split(' ')
  await admin.call('ACL', 'SETUSER', 'default', 'reset', 'on', 'nopass', ...permissions)
  const store = await storeForThisTest(redis.socket)
  const adapter = new ExpressSessionStore(store, {
    migrateFrom: 'sess:',
    maxSessionsPerUser: 2,
    userOf: (session) => session.user as string,
  })
  expect(await adapter.get('old')).toMatchObject({ user: 'ada' })
  for (const id of ['one', 'two', 'three']) {
    await adapter.set(id, { cookie: {}, user: 'ada', cart: [] } as never)
    await adapter.set(id, { cookie: {}, user: 'ada' } as never)
    await adapter.touch(id, { cookie: {}, user: 'ada' } as never)
  }
  expect(await adapter.ofUser('ada')).toHaveLength(2)
  await adapter.destroy('three')
  await adapter.set('two', { cookie: {} } as never)
  expect(await adapter.endUserSessions('ada')).toBe(0)
  await expect(adapter.ids()).rejects.toMatchObject({ code: 'ONETRIP_REFUSED' }) // SCAN
})
