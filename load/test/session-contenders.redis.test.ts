import { expect, onTestFinished, test, vi } from 'vitest'
import { apisOfThisFile } from './support/apis.ts'

const apis = apisOfThisFile()

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

test('connect-redis: a view needs three round trips', async () => {
  const api = await apis.forThisTest('connect-redis')
  const token = await api.login('ada')
  const before = await apis.commands()
  await api.view(token, 'tea')
  expect(await apis.commands()).toBe(before + 4) // GET, ZINCRBY, SET, and the previous INFO
})

test('connect-redis: concurrent views overwrite each other', async () => {
  const api = await apis.forThisTest('connect-redis')
  const other = await apis.forThisTest('connect-redis')
  const token = await api.login('ada')
  await pauseWrites()
  const views = [api.view(token, 'tea'), other.view(token, 'milk')]
  await waiting('zincrby', 2) // both have read the session
  await resumeWrites()
  for (const view of views) expect(await view).toMatchObject({ status: 200, body: { views: 1 } })
  expect((await api.get('/me/views', token)).body).toMatchObject({ items: { length: 1 } })

  const ours = await apis.forThisTest('batch')
  const ourToken = await ours.login('ada')
  await Promise.all(['tea', 'milk'].map((item) => ours.view(ourToken, item)))
  expect((await ours.get('/me/views', ourToken)).body).toMatchObject({ items: { length: 2 } })
})

test('connect-redis: a concurrent view restores a session that was logged out', async () => {
  const api = await apis.forThisTest('connect-redis')
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
