import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import { type Command, createSessionStore, type StrategyName } from '../src/core/index.ts'

const server = redisOfThisFile()

async function storeBy(strategy: StrategyName) {
  const store = createSessionStore({
    url: `unix://${server.socket}`,
    strategy,
    tokens: { secrets: ['a-secret-for-tests-a-secret-for-tests'] },
    janitor: 'elsewhere',
    deadlineMs: 20_000,
  })
  onTestFinished(() => store.close())
  await store.ready()
  const users = Array.from({ length: 16 }, (_, index) => `user-${index}`)
  const sessions = await Promise.all(users.map((user) => store.login(user)))
  return { store, tokens: sessions.map(({ token }) => token) }
}

const failures = async (calls: Promise<unknown>[]) =>
  (await Promise.allSettled(calls)).filter(({ status }) => status === 'rejected').length

test.each(['batch', 'pipeline'] as const)(
  '%s: a key of the wrong type fails the calls that use it, until it is repaired',
  async (strategy) => {
    const { store, tokens } = await storeBy(strategy)
    const viewAll = () => failures(tokens.map((token) => store.recordView(token, 'book')))

    const own = `viewed:${tokens[0]?.split('.')[0]}`
    await server.redis.set(own, 'not a sorted set')
    expect(await viewAll()).toBe(1)
    await server.redis.del(own)
    for (const shared of ['recent:', 'login:']) {
      await server.redis.rename(shared, 'saved')
      await server.redis.set(shared, 'neither a hash nor a sorted set')
      expect(await viewAll()).toBe(tokens.length)
      await server.redis.rename('saved', shared)
    }
    expect(await viewAll()).toBe(0)
  },
)

// The position of the view's command with the same key, and a command that Redis refuses.
const refused: [place: number, command: Command][] = [
  [0, ['ZADD', 'recent:', 'XX', 'not a number', 'member']],
  [0, ['ZADD', 'recent:', 'XX', 1]],
  [0, ['ZADD', 'recent:', 'XX', 1, 'member', 2]],
  [3, ['ZINCRBY', 'viewed:', 'not a number', 'book']],
  [4, ['HGET', 'login:']],
]

test.each(refused)('at position %i, the custom command %j fails alone', async (place, command) => {
  const { store, tokens } = await storeBy('batch')
  const view = (token: string) => store.recordView(token, 'book')
  const views = tokens.slice(0, 8).map(view)
  const own = store.run({
    commands: [...Array.from({ length: place }, (): Command => ['PING']), command],
    mergeable: true,
    readOnly: false,
    read: (replies) => replies,
  })
  const laterViews = tokens.slice(8, 15).map(view)
  expect(await Promise.all([failures([own]), failures([...views, ...laterViews])])).toEqual([1, 0])
})

test('calls are answered in order', async () => {
  const { store, tokens } = await storeBy('batch')
  const answered: number[] = []
  const calls = Array.from({ length: 200 }, async (_, index) => {
    await store.checkToken(tokens[index % tokens.length] ?? '')
    answered.push(index)
  })
  await Promise.all(calls)
  expect(answered).toEqual(calls.map((_, index) => index))
})
