import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { documentKeys as keys } from '../src/keys.ts'
import type { Outcome } from '../src/outcomes.ts'
import { pipeline } from '../src/senders/wires.ts'
import {
  type Command,
  type Reply,
  recordView,
  touchSession,
  type Update,
  undoView,
  updateToken,
} from '../src/updates.ts'
import { endSessions, forgetSessions, login } from '../src/user-sessions.ts'
import { interleavings } from './interleavings.ts'

const id = 'a-session'
const item = 'book'

const server = redisOfThisFile()

/** Runs two updates in one of those orders, as one pipeline. */
async function inOrder<A, B>(order: (0 | 1)[], one: Update<A>, two: Update<B>): Promise<[A, B]> {
  const left: [Command[], Command[]] = [[...one.commands], [...two.commands]]
  const commands = order.map((which) => left[which].shift() as Command)
  const outcomes: Outcome[] = await pipeline.send(server.redis, commands)
  const repliesTo = (which: 0 | 1) =>
    outcomes.filter((_, index) => order[index] === which) as readonly Reply[]
  return [one.read(repliesTo(0)), two.read(repliesTo(1))]
}

const state = async () => ({
  login: await server.redis.hgetall('login:'),
  recent: await server.redis.zrange('recent:', '0', '-1'),
  viewed: await server.redis.exists(`viewed:${id}`),
  count: await server.redis.zscore('viewed:', item),
})

async function fresh(): Promise<void> {
  await server.redis.flushall()
  await pipeline.send(server.redis, updateToken(keys, { id, user: 'ada' }, 1).commands)
}

test('a view and a logout, in all 126 orders: the session stays gone, and the view counts or is undone', async () => {
  let acknowledged = 0
  const view = recordView(keys, { id, item }, 2)
  const logout = endSessions(keys, [id])
  const orders = [...interleavings(view.commands.length, logout.commands.length)]
  expect(orders).toHaveLength(126)
  for (const order of orders) {
    await fresh()
    const [seen, ended] = await inOrder(order, view, logout)
    expect(ended).toEqual(['ada'])
    if (seen === undefined) await pipeline.send(server.redis, undoView(keys, { id, item }).commands)
    else acknowledged++
    const count = seen === undefined ? null : '-1'
    expect(await state(), order.join('')).toEqual({ login: {}, recent: [], viewed: 0, count })
  }
  expect(acknowledged).toBeGreaterThan(0)
  expect(acknowledged).toBeLessThan(orders.length)
})

test('a refresh and a logout, in all orders: the session stays gone', async () => {
  const touch = touchSession(keys, id, 2)
  const logout = endSessions(keys, [id])
  for (const order of interleavings(touch.commands.length, logout.commands.length)) {
    await fresh()
    await inOrder(order, touch, logout)
    expect(await state(), order.join('')).toMatchObject({ login: {}, recent: [] })
  }
})

test('two logouts at once: one of them ended the session', async () => {
  const logout = () => endSessions(keys, [id])
  for (const order of interleavings(4, 4)) {
    await fresh()
    const results = await inOrder(order, logout(), logout())
    expect(results.flat().filter((user) => user === 'ada')).toHaveLength(1)
  }
})

test('a login while the user is logged out everywhere: a session that stays is in the list', async () => {
  const begins = login(keys, { id, user: 'ada' }, 1)
  const orders = [...interleavings(begins.commands.length, 4)]
  for (const order of orders) {
    await server.redis.flushall()
    const [, [user]] = await inOrder(order, begins, endSessions(keys, [id]))
    if (user) await pipeline.send(server.redis, forgetSessions(keys, user, [id]).commands)
    const exists = await server.redis.hexists('login:', id)
    const listed = await server.redis.zcard('sessions:ada')
    expect(listed, order.join('')).toBeGreaterThanOrEqual(exists)
  }
})
