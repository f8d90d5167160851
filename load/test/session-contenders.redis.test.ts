import { expect, onTestFinished, test, vi } from 'vitest'
import { apisOfThisFile } from './support/apis.ts'

const apis = apisOfThisFile()

test('connect-redis: a view is three round trips; views at the same time overwrite each other', async () => {
  const api = await apis.forThisTest('connect-redis')
  const token = await api.login('ada')
  const before = await apis.commands()
  await api.view(token, 'tea')
  expect(await apis.commands()).toBe(before + 4) // GET, ZINCRBY, SET; the INFO before

  const viewed = Array.from({ length: 25 }, (_, index) => `item ${index}`)
  await Promise.all(viewed.map((item) => api.view(token, item)))
  const { items } = (await api.get('/me/views', token)).body as { items: unknown[] }
  expect(items.length).toBeLessThan(25) // each wrote back the whole list that it had read
  expect((await api.get('/items/popular?limit=100')).body).toMatchObject({
    items: Array.from({ length: 26 }, () => ({ views: 1 })),
  })

  const ours = await apis.forThisTest('batch')
  const other = await ours.login('ada')
  await Promise.all(viewed.map((item) => ours.view(other, item)))
  expect((await ours.get('/me/views', other)).body).toMatchObject({ items: { length: 25 } })
})

test('connect-redis: a view brings back the session that was logged out meanwhile', async () => {
  const api = await apis.forThisTest('connect-redis')
  const token = await api.login('ada')
  const [session = ''] = await apis.redis.keys('limit:sess:*')
  const other = apis.redis.duplicate() // as a second process of the application
  onTestFinished(() => other.disconnect())
  await other.ping()

  await apis.redis.call('CLIENT', 'PAUSE', 60_000, 'WRITE')
  const view = api.view(token, 'tea')
  const waits = (command: string) =>
    vi.waitFor(
      async () => {
        const list = await apis.redis.call('CLIENT', 'LIST')
        expect(list).toMatch(new RegExp(`flags=b\\w* .*cmd=${command} `))
      },
      { timeout: 10_000 },
    )
  await waits('zincrby') // by then the view has read the session
  const logout = other.del(session)
  await waits('del')
  await apis.redis.call('CLIENT', 'UNPAUSE')
  expect(await logout).toBe(1)
  expect(await view).toMatchObject({ status: 200 })
  expect(await api.get('/me', token)).toMatchObject({ status: 200, body: { user: 'ada' } })
})
