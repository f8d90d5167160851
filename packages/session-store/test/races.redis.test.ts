import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { withData } from '../src/data/read.ts'
import { writeData } from '../src/data/write.ts'
import { articleKeys as keys } from '../src/keys.ts'
import { sendPipeline } from '../src/redis/write-frame.ts'
import { checkToken, touchSession } from '../src/sessions/check.ts'
import { forgetSessions } from '../src/sessions/list.ts'
import { login } from '../src/sessions/log-in.ts'
import { endSessions } from '../src/sessions/log-out.ts'
import { recordView, undoView, writeSession } from '../src/views/record.ts'
import { inOrder, interleavings } from './interleavings.ts'

const id = 'a-session'
const item = 'book'

const server = redisOfThisFile()

const state = async () => ({
  login: await server.redis.hgetall('login:'),
  recent: await server.redis.zrange('recent:', '0', '-1'),
  viewed: await server.redis.exists(`viewed:${id}`),
  count: await server.redis.zscore('viewed:', item),
})

const written = (mode: 'patch' | 'replace') => {
  const fields = { set: [['cart', '[]']], removed: [] } as const
  return writeData(keys, { id, mode, fields }, { now: 2_000, idleBefore: 0 })
}

async function fresh(of = id): Promise<void> {
  await server.redis.flushall()
  await sendPipeline(server.redis, writeSession(keys, { id: of, user: 'ada' }, 1).commands)
}

test('a view and a logout, in all orders: the session stays gone, and the view counts or is undone', async () => {
  let acknowledged = 0
  const view = recordView(keys, { id, item }, 2)
  const logout = endSessions(keys, [id])
  const orders = [...interleavings(view.commands.length, logout.commands.length)]
  expect(orders).toHaveLength(6)
  for (const order of orders) {
    await fresh()
    const [seen, ended] = await inOrder(server.redis, order, [view, logout])
    expect(ended).toEqual(['ada'])
    if (seen === undefined) await sendPipeline(server.redis, undoView(keys, { id, item }).commands)
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
    await inOrder(server.redis, order, [touch, logout])
    expect(await state(), order.join('')).toMatchObject({ login: {}, recent: [] })
  }
})

test('a patch and a logout, in all orders: the session and its data stay gone', async () => {
  const logout = endSessions(keys, [id])
  for (const mode of ['patch', 'replace'] as const) {
    const patch = written(mode)
    const results: unknown[] = []
    for (const order of interleavings(patch.commands.length, logout.commands.length)) {
      await fresh()
      const [result, ended] = await inOrder(server.redis, order, [patch, logout])
      expect(ended).toEqual(['ada'])
      expect(await server.redis.keys('*'), order.join('')).toEqual([])
      results.push(result)
    }
    expect(results).toContain('gone')
    expect(results).toContainEqual({ version: 1 })
  }
})

test('a read with data and a logout, in all orders: all of the data, or no session', async () => {
  const logout = endSessions(keys, [id])
  const read = withData(checkToken(keys, id), keys, id)
  const seen = new Set<number | undefined>()
  for (const order of interleavings(read.commands.length, logout.commands.length)) {
    await fresh()
    await sendPipeline(server.redis, written('patch').commands)
    const [session] = await inOrder(server.redis, order, [read, logout])
    seen.add(session?.data.version)
  }
  expect(seen).toEqual(new Set([undefined, 1]))
})

test('two concurrent logouts: exactly one ends the session', async () => {
  const logout = () => endSessions(keys, [id])
  const steps = logout().commands.length
  for (const order of interleavings(steps, steps)) {
    await fresh()
    const results = await inOrder(server.redis, order, [logout(), logout()])
    expect(results.flat().filter((user) => user === 'ada')).toHaveLength(1)
  }
})

test('a login during "log out everywhere": a session that remains is in the list', async () => {
  const begins = login(keys, { id, user: 'ada' }, 1)
  const ends = endSessions(keys, [id])
  const orders = [...interleavings(begins.commands.length, ends.commands.length)]
  for (const order of orders) {
    await server.redis.flushall()
    const [, [user]] = await inOrder(server.redis, order, [begins, ends])
    if (user) await sendPipeline(server.redis, forgetSessions(keys, user, [id]).commands)
    const exists = await server.redis.hexists('login:', id)
    const listed = await server.redis.zcard('sessions:ada')
    expect(listed, order.join('')).toBeGreaterThanOrEqual(exists)
  }
})
