import { expect, test, vi } from 'vitest'
import { betterAuthStorage } from '../../src/adapters/better-auth.ts'
import { retentionServer } from '../retention-fixture.ts'

const server = retentionServer()

const token = 'a1B2'.repeat(8)
const TTL = 604_800
/** What better-auth stores for a session. */
const stored = (userId: unknown, ipAddress = '') =>
  JSON.stringify({ session: { token, userId, ipAddress }, user: { id: userId } })

/** A storage for the other keys, in memory. */
function memory() {
  const values = new Map<string, unknown>()
  return {
    values,
    get: vi.fn((key: string) => values.get(key) ?? null),
    set: (key: string, value: string) => void values.set(key, value),
    delete: (key: string) => void values.delete(key),
    getAndDelete: (key: string) => `${key} is gone`,
    increment: (_: string, ttl: number) => ttl,
  }
}

async function begin() {
  const { clock, store } = await server.start()
  const others = memory()
  return { clock, store, others, storage: betterAuthStorage(store, others) }
}

test('a session is in the store, and all other keys are in the other storage', async () => {
  const { storage, others, store } = await begin()
  await storage.set(token, stored('ada'), TTL)
  expect(await storage.get(token)).toBe(stored('ada'))
  expect(others.get).not.toHaveBeenCalled()
  const list = `active-sessions-${token}`
  for (const key of [list, 'verification:x', token.replaceAll('a', 'b'), `${token}x`]) {
    for (const value of ['[]', 'text', 'null']) {
      await storage.set(key, value, TTL)
      expect(await storage.get(key)).toBe(value)
    }
    await storage.delete(key)
    expect(await storage.get(key)).toBe(null)
  }
  expect(others.values.size).toBe(0)
  expect(await storage.getAndDelete('x')).toBe('x is gone')
  expect(await storage.increment('x', 60)).toBe(60)
  expect(await store.endUserSessions('ada')).toBe(1)
  expect(await storage.get(token)).toBe(null)
})

test.each(['delete', 'endUserSessions'])(
  'a save after %s does not bring a session back',
  async (end) => {
    const { storage, store } = await begin()
    await storage.set(token, stored('ada'), TTL)
    const loaded = await storage.get(token)
    expect(loaded).toBe(stored('ada'))
    if (end === 'delete') await storage.delete(token)
    else await store.endUserSessions('ada')
    await storage.set(token, stored('ada', '127.0.0.1'), TTL)
    expect(await storage.get(token)).toBe(null)
    expect(await store.endUserSessions('ada')).toBe(0)
  },
)

test('a session ends with its time to live', async () => {
  const { storage } = await begin()
  const now = Date.now()
  await storage.set(token, stored('ada'), 60)
  vi.spyOn(Date, 'now').mockReturnValue(now + 61_000)
  expect(await storage.get(token)).toBe(null)
  vi.restoreAllMocks()
  await storage.set(token, stored('ada'))
  expect(await storage.get(token)).toBe(stored('ada'))
})

test('refuses a user that is no text, and an incomplete storage', async () => {
  const { storage, store, others } = await begin()
  await expect(storage.set(token, stored(42), TTL)).rejects.toThrow('must be a string')
  const { increment: _, ...incomplete } = others
  expect(() => betterAuthStorage(store, incomplete as never)).toThrow(
    'needs the functions increment',
  )
})
