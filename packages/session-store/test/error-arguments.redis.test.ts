import { inspect } from 'node:util'
import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { articleKeys, StoreError } from '../src/index.ts'
import { adminForThisTest, idOf, newStore, readyStore } from './fixture.ts'

const server = redisOfThisFile()

/** All text of this call's error that a log may show. */
async function shownError(call: Promise<unknown>): Promise<string> {
  const error = await call.catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(StoreError)
  return inspect(error, { depth: null, showHidden: true })
}

test('an error shows the name of a command, not its arguments', async () => {
  const redis = await redisForThisTest()
  const store = await readyStore({ redis: `unix://${redis.socket}` })
  const { token } = await store.login('ada')
  const id = idOf(token)
  const admin = adminForThisTest(redis.socket)
  await admin.set(articleKeys.viewed(id), 'not a sorted set')
  const view = () => shownError(store.recordView(token, 'a-secret-item'))
  const refused = await view()
  expect(refused).toContain('WRONGTYPE')

  const commands = [['NOSUCHCOMMAND', 'a-secret-key', 'a secret value']] as const
  const unknown = await shownError(store.run({ commands, readOnly: false, read: () => null }))
  expect(unknown).toContain('ONETRIP_REFUSED')

  redis.program.signal('SIGSTOP')
  const lost = view()
  redis.program.signal('SIGKILL')
  for (const shown of [refused, unknown, await lost]) {
    expect(shown).not.toContain(id)
    expect(shown).not.toMatch(/a.secret/)
  }
})

test('a wrong password is not shown', async () => {
  await server.redis.call('ACL', 'SETUSER', 'shop', 'on', '>right', '~*', '&*', '+@all')
  const url = `unix://shop:a-wrong-password@localhost${server.socket}`
  const shown = await shownError(newStore({ redis: url }).ready(500))
  expect(shown).toContain('WRONGPASS')
  expect(shown).not.toContain('a-wrong-password')
})
