import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { articleKeys } from '../src/index.ts'
import { readyStore, tokens } from './fixture.ts'

const server = redisOfThisFile()
const START = 1_700_000_000 // 20 s after the start of a window of 60 s

let now = START

function storeForThisTest(keys = articleKeys) {
  now = START
  const clock = () => now * 1000
  return readyStore({
    redis: `unix://${server.socket}`,
    keys,
    tokens: { ...tokens, clock },
  })
}

test('counts attempts per subject, over several stores; each window starts at zero, and every counter expires', async () => {
  const [one, other] = [await storeForThisTest(), await storeForThisTest()]
  const windowEndsAt = 1000 * (START + 40)
  expect(await one.countAttempts(['ada', '::1'], 60)).toEqual({ counts: [1, 1], windowEndsAt })
  expect(await other.countAttempts(['eve', '::1'], 60)).toEqual({ counts: [1, 2], windowEndsAt })
  now = START + 39
  expect(await one.countAttempts(['ada', '::1'], 60)).toEqual({ counts: [2, 3], windowEndsAt })
  now = START + 40
  const next = { counts: [1], windowEndsAt: windowEndsAt + 60_000 }
  expect(await one.countAttempts(['ada'], 60)).toEqual(next)
  const keys = await server.redis.keys('*')
  expect(keys).toHaveLength(4)
  for (const key of keys) expect(await server.redis.ttl(key)).toBeGreaterThan(100)
})

test('the key of a subject has a fixed length and does not contain its text', async () => {
  const store = await storeForThisTest()
  const subjects = ['', 'x'.repeat(1_000_000), 'a\r\nFLUSHALL\r\n', '\u0000\ud800🦊', 'limit:x']
  expect((await store.countAttempts(subjects, 60)).counts).toEqual([1, 1, 1, 1, 1])
  const keys = await server.redis.keys('*')
  expect(keys).toHaveLength(subjects.length)
  for (const key of keys) expect(key).toMatch(/^limit:[\w-]{22}:28333333$/)
})
