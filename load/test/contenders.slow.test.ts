import { readdir } from 'node:fs/promises'
import { infoOf, readApi } from '@onetrip/stack/measure/usage.ts'
import type { Program } from '@onetrip/stack/program.ts'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Variant } from '../src/variants.ts'
import { clientOf, contenders } from '../src/variants.ts'
import { type Api, apisOfThisFile } from './support/apis.ts'

/** Keeps the views in the session. */
const hasSessions = (name: Variant) => name === 'connect-redis'

/** What a page view takes. */
function tripsOf(name: Variant) {
  // Applications of their own, and clients that pipeline by themselves, do not report round trips.
  if (hasSessions(name) || name === 'autopipelining') return { commands: 0, roundTrips: 0 }
  return { commands: 5, roundTrips: name === 'naive-lean' ? 5 : 1 }
}

/** Other clients behind our store. They write the same records as our clients. */
const clients = contenders.filter((name) => clientOf(name) !== null && !hasSessions(name))

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

/** A visit as a client sees it: all answers without times, and the statuses of rejected requests. */
async function visit(api: Api): Promise<object> {
  const token = await api.login('ada')
  const answers = [
    await api.view(token, 'tea'),
    await api.view(token, 'book'),
    await api.view(await api.login('grace'), 'tea'),
    await api.view(token, 'tea'),
    await api.get('/me', token),
    await api.get('/me/views', token),
    await api.get('/items/popular?limit=1'),
  ]
  // Redis sorts items of the same millisecond by name.
  for (let view = 10; view < 40; view++) await api.view(token, `item ${view}`)
  answers.push(await api.get('/me/views', token))
  const rejected = [await api.view(`${token.slice(0, -5)}AAAAA`, 'tea'), await api.view(token, '')]
  await api.logout(token)
  rejected.push(await api.view(token, 'tea'), await api.get('/me', token))
  const text = JSON.stringify(answers).replaceAll(/"(lastSeenAt|viewedAt)":\d+/g, '"$1":0')
  return { answers: JSON.parse(text), statuses: rejected.map(({ status }) => status) }
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

const ours = apis.forThese('batch')
let ourVisit: object
let ourRecords: object

beforeAll(async () => {
  ourVisit = await visit(ours.api)
  await apis.redis.flushall()
  await manyViews(ours.api)
  ourRecords = await records()
})

describe.each([...clients, 'connect-redis'] as const)('%s', (name) => {
  const these = apis.forThese(name)

  test('serves all routes as our API does', async () => {
    expect(await visit(these.api)).toEqual(ourVisit)
    expect(await these.api.get('/readyz')).toMatchObject({ status: 200 })
  })

  test('reports its client, round trips, commands and CPU time', async () => {
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
    expect(clientOf(name)).toMatch(/^\S+ \d+\.\d+\.\d+$/)
  })

  if (hasSessions(name)) return

  test('counts each view once, and writes the same records as our API', async () => {
    const counts = await manyViews(these.api)
    for (const item of new Set(items)) {
      const total = 10 * viewers.length * items.filter((each) => each === item).length
      // All answers have different counts, so no view was counted twice or lost.
      expect(counts.get(item)?.toSorted((a, b) => Number(a) - Number(b))).toEqual(
        Array.from({ length: total }, (_, index) => index + 1),
      )
    }
    expect(await records()).toEqual(ourRecords)
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

test('bare answers with the same schema, and sends no commands', async () => {
  const api = await apis.forThisTest('bare')
  const before = await apis.commands()
  const token = await api.login('ada')
  const answer = { user: expect.any(String), item: 'tea', views: 1 }
  expect(await api.view(token, 'tea')).toEqual({ status: 200, body: answer })
  expect(await api.view(token, '')).toMatchObject({ status: 400 })
  expect(await api.get('/me', token)).toMatchObject({ status: 200, body: { user: 'nobody' } })
  expect(await api.get('/me/views', token)).toEqual({ status: 200, body: { items: [] } })
  expect(await api.get('/items/popular')).toEqual({ status: 200, body: { items: [] } })
  await api.logout(token)
  expect(await infoOf(api.url)).toMatchObject({ strategy: 'bare' })
  expect(await apis.commands()).toBe(before + 1) // the previous INFO
})
