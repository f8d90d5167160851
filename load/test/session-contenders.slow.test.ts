import { expect, onTestFinished, test, vi } from 'vitest'
import { apisOfThisFile } from './support/apis.ts'

// Our store has neither race: packages/session-store/test/races.redis.test.ts.

const apis = apisOfThisFile()
const connectRedis = apis.forThese('connect-redis')

/** Blocks write commands until `resumeWrites`. */
const pauseWrites = () => apis.redis.call('CLIENT', 'PAUSE', 60_000, 'WRITE')
const resumeWrites = () => apis.redis.call('CLIENT', 'UNPAUSE')

/** Waits until a number of clients are blocked in this command. */
const waiting = (command: string, clients: number) =>
  vi.waitFor(
    async () => {
      const list = String(await apis.redis.call('CLIENT', 'LIST'))
      const blocked = new RegExp(`flags=b\\w* .*cmd=${command} `, 'g')
      expect(list.match(blocked)).toHaveLength(clients)
    },
    { timeout: 60_000 },
  )

test('connect-redis: concurrent views overwrite each other', async () => {
  const { api } = connectRedis
  const other = await apis.forThisTest('connect-redis')
  const token = await api.login('ada')
  await pauseWrites()
  const views = [api.view(token, 'tea'), other.view(token, 'milk')]
  await waiting('zincrby', 2) // both have read the session
  await resumeWrites()
  for (const view of views) expect(await view).toMatchObject({ status: 200, body: { views: 1 } })
  expect((await api.get('/me/views', token)).body).toMatchObject({ items: { length: 1 } })
})

test('connect-redis: a concurrent view restores a session that was logged out', async () => {
  const { api } = connectRedis
  const token = await api.login('ada')
  const [session = ''] = await apis.redis.keys('limit:sess:*')
  const other = apis.redis.duplicate() // simulates a second process of the application
  onTestFinished(() => other.disconnect())
  await other.ping()

  await pauseWrites()
  const view = api.view(token, 'tea')
  await waiting('zincrby', 1) // the view has read the session
  const logout = other.del(session)
  await waiting('del', 1)
  await resumeWrites()
  expect(await logout).toBe(1)
  expect(await view).toMatchObject({ status: 200 })
  expect(await api.get('/me', token)).toMatchObject({ status: 200, body: { user: 'ada' } })
})
