import { readdir } from 'node:fs/promises'
import { infoOf, readApi } from '@onetrip/stack/measure/usage.ts'
import type { Program } from '@onetrip/stack/program.ts'
import { describe, expect, test } from 'vitest'
import type { Variant } from '../src/variants.ts'
import { clientOf, contenders } from '../src/variants.ts'
import { type Api, apisOfThisFile } from './support/apis.ts'

/** Applications that keep the views in the session. */
const hasSessions = (name: Variant) => name === 'connect-redis' || name === 'express'

/** What a page view takes. */
function tripsOf(name: Variant) {
  if (hasSessions(name)) return { commands: 3, roundTrips: 3 }
  return { commands: 5, roundTrips: name === 'naive-lean' ? 5 : 1 }
}

/** Other clients behind our store. They write the same records as our clients. */
const clients = contenders.filter((name) => clientOf(name) !== null && !hasSessions(name))

const isClient = (name: Variant) => clients.some((client) => client === name)

const apis = apisOfThisFile()

const viewers = ['ada', 'grace', 'mary']
const items = ['tea', 'book', 'lamp', 'tea', 'cup', 'tea']

/** Sends concurrent views by all users. Returns the counts in the answers, by item. */
async function manyViews(api: Api): Promise<Map<string, unknown[]>> {
  const tokens = await Promise.all(viewers.map(api.login))
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => tokens)
      .flat()
      .flatMap((token) => items.map((item) => api.view(token, item))),
  )
  const counts = new Map<string, unknown[]>()
  for (const { status, body } of answers) {
    expect(status).toBe(200)
    expect(viewers).toContain(body.user)
    counts.set(String(body.item), [...(counts.get(String(body.item)) ?? []), body.views])
  }
  return counts
}

/** The records in Redis without the janitor's lock and without times, with users instead of ids. */
async function records(): Promise<object> {
  const logins = await apis.redis.hgetall('login:')
  const views = await Promise.all(
    Object.entries(logins).map(async ([id, user]) => {
      const viewed = await apis.redis.zrange(`viewed:${id}`, '0', '-1')
      return [
        user,
        { recent: (await apis.redis.zscore('recent:', id)) !== null, viewed: viewed.sort() },
      ]
    }),
  )
  const keys = (await apis.redis.keys('*')).filter((key) => !key.startsWith('janitor:'))
  const types = keys.map((key) => key.replace(/:.+/, ':id')).sort()
  const counts = await apis.redis.zrange('viewed:', '0', '-1', 'WITHSCORES')
  return { keys: types, sessions: Object.fromEntries(views), counts }
}

let expected: object

describe.each([...clients, 'connect-redis', 'express', 'batch'] as const)('%s', (name) => {
  const these = apis.forThese(name)

  test('serves all routes from login to logout', async () => {
    const { api } = these
    const token = await api.login('ada')
    expect(await api.view(token, 'tea')).toEqual({
      status: 200,
      body: { user: 'ada', item: 'tea', views: 1 },
    })
    await api.view(token, 'book')
    expect((await api.view(await api.login('grace'), 'tea')).body).toMatchObject({ views: 2 })
    expect(await api.view(token, 'tea')).toMatchObject({ body: { views: 3 } })
    expect(await api.get('/me', token)).toMatchObject({
      status: 200,
      body: { user: 'ada', lastSeenAt: expect.closeTo(Date.now(), -5) },
    })
    const { body } = await api.get('/me/views', token)
    expect(body).toEqual({
      items: [
        { item: 'tea', viewedAt: expect.closeTo(Date.now(), -5) },
        { item: 'book', viewedAt: expect.closeTo(Date.now(), -5) },
      ],
    })
    expect(await api.get('/items/popular?limit=1')).toEqual({
      status: 200,
      body: { items: [{ item: 'tea', views: 3 }] },
    })
    for (let view = 0; view < 30; view++) await api.view(token, `item ${view}`)
    const { items } = (await api.get('/me/views', token)).body as { items: { item: string }[] }
    expect(items).toHaveLength(25)
    expect(items[0]).toMatchObject({ item: 'item 29' })

    expect(await api.view(`${token.slice(0, -5)}AAAAA`, 'tea')).toMatchObject({ status: 401 })
    expect(await api.view(token, '')).toMatchObject({ status: 400 })
    await api.logout(token)
    expect(await api.view(token, 'tea')).toMatchObject({ status: 401 })
    expect(await api.get('/me', token)).toMatchObject({ status: 401 })
    expect(await api.get('/readyz')).toMatchObject({ status: 200 })
  })

  test('reports round trips, commands and CPU time', async () => {
    const { api } = these
    const token = await api.login('ada')
    const before = await readApi(api.url)
    await api.view(token, 'tea')
    const after = await readApi(api.url)
    expect({
      commands: after.commands - before.commands,
      roundTrips: after.roundTrips - before.roundTrips,
    }).toEqual(tripsOf(name))
    expect(after.cpuSeconds).toBeGreaterThan(before.cpuSeconds)
    expect(await infoOf(api.url)).toMatchObject({ strategy: name })
  })

  test('has a client with a version', async () => {
    expect(clientOf(name)).toMatch(/^\S+ \d+\.\d+\.\d+$/)
  })

  if (!isClient(name)) return

  test('counts each view once, and writes the same records as our pipeline', async () => {
    if (!expected) {
      await manyViews(await apis.forThisTest('pipeline'))
      expected = await records()
      await apis.redis.flushall()
    }
    const { api } = these
    const counts = await manyViews(api)
    for (const item of new Set(items)) {
      const total = 10 * viewers.length * items.filter((each) => each === item).length
      // All answers have different counts, so no view was counted twice or lost.
      expect(counts.get(item)?.toSorted((a, b) => Number(a) - Number(b))).toEqual(
        Array.from({ length: total }, (_, index) => index + 1),
      )
    }
    expect(await records()).toEqual(expected)
  })

  test('rejects a forged token and an ended session, and leaves no records', async () => {
    const { api } = these
    const token = await api.login('ada')
    expect(await api.view(`${token.slice(0, -5)}AAAAA`, 'tea')).toMatchObject({ status: 401 })
    await api.logout(token)
    expect(await api.view(token, 'tea')).toMatchObject({
      status: 401,
      body: { code: 'ONETRIP_UNKNOWN_SESSION' },
    })
    expect(await apis.redis.keys('*')).toEqual([])
  })

  test('reports a command that Redis refused, and still serves other requests', async () => {
    const { api } = these
    const token = await api.login('ada')
    await apis.redis.set(`viewed:${token.split('.')[0]}`, 'no sorted set')
    // node-redis rejects the whole pipeline; the other senders check each reply.
    const code = name === 'node-redis' ? 'ONETRIP_OUTCOME_UNKNOWN' : 'ONETRIP_REFUSED'
    expect(await api.view(token, 'tea')).toMatchObject({
      status: 503,
      body: { code, mayHaveWritten: true },
    })
    expect(await api.view(await api.login('grace'), 'tea')).toMatchObject({ status: 200 })
  })
})

test('glide leaves no socket behind when it is stopped or killed', async () => {
  const sockets = async ({ pid }: Program) =>
    (await readdir('/tmp')).filter((name) => name.startsWith(`glide-socket-${pid}-`))
  const stopped = (await apis.forThisTest('glide')).program
  expect(await sockets(stopped)).toHaveLength(1)
  await stopped.stop()
  expect(await sockets(stopped)).toEqual([])

  const killed = (await apis.forThisTest('glide')).program
  killed.signal('SIGKILL')
  await killed.exited
  expect(await sockets(killed)).toEqual([])
})

test('noop sends no commands, but checks the token and answers with the same schema', async () => {
  const api = await apis.forThisTest('noop')
  const token = await api.login('ada')
  const before = await apis.commands()
  const answer = await api.view(token, 'tea')
  expect(answer).toEqual({ status: 200, body: { user: expect.any(String), item: 'tea', views: 1 } })
  expect(await api.view('x', 'tea')).toMatchObject({ status: 401 })
  expect(await api.get('/me', token)).toMatchObject({ status: 200, body: { user: 'nobody' } })
  expect(await api.get('/me/views', token)).toEqual({ status: 200, body: { items: [] } })
  expect(await api.get('/items/popular')).toEqual({ status: 200, body: { items: [] } })
  await api.logout(token)
  expect(await apis.commands()).toBe(before + 1) // the previous INFO
  expect(await api.program.stop()).toEqual({ code: 0, signal: null })
})

test('bare serves all routes of the load generator, without tokens and without Redis', async () => {
  const api = await apis.forThisTest('bare')
  const before = await apis.commands()
  const token = await api.login('ada')
  expect(token).toHaveLength(76)
  expect(await api.view(token, 'tea')).toEqual({
    status: 200,
    body: { user: 'nobody', item: 'tea', views: 1 },
  })
  expect(await api.view('x', 'tea')).toMatchObject({ status: 200 })
  expect(await api.view(token, '')).toMatchObject({ status: 400 })
  expect(await api.get('/me', token)).toMatchObject({ status: 200, body: { user: 'nobody' } })
  expect(await api.get('/me/views', token)).toEqual({ status: 200, body: { items: [] } })
  expect(await api.get('/items/popular')).toEqual({ status: 200, body: { items: [] } })
  await api.logout(token)
  expect(await infoOf(api.url)).toMatchObject({ strategy: 'bare' })
  expect(await readApi(api.url)).toMatchObject({ commands: 0, roundTrips: 0 })
  expect(await apis.commands()).toBe(before + 1) // the previous INFO
  expect(await api.program.stop()).toEqual({ code: 0, signal: null })
})
