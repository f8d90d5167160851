import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { FastifyInstance } from 'fastify'
import { expect, test } from 'vitest'
import { MAX_ENTRIES } from '../../src/shop/feed.ts'
import { shopKeys } from '../../src/shop/keys.ts'
import { bearer, demoForThisTest, login } from '../support.ts'

const server = redisOfThisFile()

interface Page {
  entries: { id: number; user: string; text: string; postedAt: number }[]
  nextCursor?: string
}

const post = (app: FastifyInstance, token: string, text: string) =>
  app.inject({ method: 'POST', url: '/feed', headers: bearer(token), payload: { text } })

/** Reads all pages; calls `between` after each. */
async function readAll(
  app: FastifyInstance,
  token: string,
  { url = '/feed', limit = 7, between = async () => {} } = {},
): Promise<Page['entries']> {
  const entries: Page['entries'] = []
  let cursor: string | undefined
  do {
    const query = `?limit=${limit}${cursor === undefined ? '' : `&cursor=${cursor}`}`
    const page = (await app.inject({ url: url + query, headers: bearer(token) })).json<Page>()
    expect(page.entries.length).toBeLessThanOrEqual(limit)
    // Only the first page of an empty feed has no entries.
    if (cursor !== undefined) expect(page.entries).not.toEqual([])
    entries.push(...page.entries)
    cursor = page.nextCursor
    await between()
  } while (cursor !== undefined)
  return entries
}

test.each(['naive', 'pipeline', 'batch'] as const)(
  '%s: a feed of all users and a feed per user',
  async (strategy) => {
    const app = await demoForThisTest(server.socket, { strategy })
    const [ada, bob] = [await login(app), await login(app, 'bob')]
    expect(await readAll(app, ada)).toEqual([])
    expect((await post(app, ada, 'first')).json()).toEqual({ id: 1 })
    expect((await post(app, bob, 'the second')).json()).toEqual({ id: 2 })
    expect((await post(app, ada, '3 "é"')).json()).toEqual({ id: 3 })
    expect(await readAll(app, bob, { limit: 2 })).toMatchObject([
      { id: 3, user: 'ada', text: '3 "é"' },
      { id: 2, user: 'bob', text: 'the second' },
      { id: 1, user: 'ada', text: 'first', postedAt: expect.any(Number) },
    ])
    expect(await readAll(app, ada, { url: '/me/feed' })).toMatchObject([
      { id: 2, user: 'ada', text: '3 "é"' },
      { id: 1, user: 'ada', text: 'first' },
    ])
    expect(await readAll(app, bob, { url: '/me/feed' })).toHaveLength(1)
  },
)

test('no entry is repeated or skipped while new ones are added between pages', async () => {
  const app = await demoForThisTest(server.socket)
  const tokens = [await login(app), await login(app, 'bob'), await login(app, 'eve')]
  const [reader = ''] = tokens
  for (let index = 0; index < 100; index++) await post(app, reader, `old ${index}`)
  let reading = true
  let posted = 0
  const posters = tokens.map(async (token) => {
    while (reading) {
      await post(app, token, `new ${posted}`)
      posted++
    }
  })
  // At least one entry is added between two pages.
  const between = async () => {
    const before = posted
    await expect.poll(() => posted, { interval: 1 }).toBeGreaterThan(before)
  }
  const entries = await readAll(app, reader, { between })
  reading = false
  await Promise.all(posters)
  const [newest] = entries
  const ids = Array.from({ length: newest?.id ?? 0 }, (_, index) => (newest?.id ?? 0) - index)
  expect(entries.map(({ id }) => id)).toEqual(ids)
  const old = entries.filter(({ text }) => text.startsWith('old'))
  expect(new Set(old.map(({ text }) => text)).size).toBe(100)
})

test("a feed keeps its newest entries, and a user's feed expires", async () => {
  const app = await demoForThisTest(server.socket)
  const token = await login(app)
  for (let posted = 0; posted < MAX_ENTRIES + 5; posted += 15) {
    await Promise.all(Array.from({ length: 15 }, () => post(app, token, 'x')))
  }
  const entries = await readAll(app, token, { limit: 100 })
  expect(entries).toHaveLength(MAX_ENTRIES)
  expect(entries.at(-1)?.id).toBe(6)
  expect(await server.redis.ttl(shopKeys.feed('ada'))).toBeGreaterThan(2_500_000)
  expect(await server.redis.ttl(shopKeys.feed())).toBe(-1)
})

test('an invalid cursor is rejected, and an unknown one reads existing entries', async () => {
  const app = await demoForThisTest(server.socket)
  const token = await login(app)
  await post(app, token, 'only')
  const get = (cursor: string) =>
    app.inject({ url: `/feed?cursor=${cursor}`, headers: bearer(token) })
  for (const cursor of ['', '0', '-1', 'x', '1e3', '9'.repeat(16)]) {
    expect((await get(cursor)).statusCode, cursor).toBe(400)
  }
  // The numbers start again, for example after Redis lost its data.
  expect((await get('999999999999999')).json<Page>().entries).toHaveLength(1)
})
