import { spawnSync } from 'node:child_process'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { generateLoad } from '../src/drivers/redis/generator/load.ts'
import { profileThread } from '../src/drivers/redis/profile.ts'

const server = redisOfThisFile()
const { signal } = new AbortController()
const canSample = spawnSync('perf', ['record', '-o', '/dev/null', 'true']).status === 0

const load = () => {
  const end = { seconds: 1 }
  const options = { target: server, mode: 'long', connections: 5, command: ['PING'] } as const
  return generateLoad({ ...options, end, signal })
}

test.runIf(canSample)('samples the main thread of Redis by function', async () => {
  const pid = Number(/^process_id:(\d+)/m.exec(await server.redis.info('server'))?.[1])
  const { profile, result } = await profileThread(pid, { seconds: 0.8, signal }, load)
  expect(result.completed).toBeGreaterThan(0)
  const shares = Object.values(profile ?? {})
  expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 1)
  // On a busy machine there are few samples, and none in some functions.
  const functions = [
    'readQueryFromClient',
    'processInputBuffer',
    'processCommand',
    'call',
    'writeToClient',
  ]
  expect(functions.some((name) => name in (profile ?? {}))).toBe(true)
})

test('runs the work without a profile if the thread cannot be sampled', async () => {
  const none = 2 ** 22 + 1 // above the highest process id of Linux
  const work = async () => 'done'
  expect(await profileThread(none, { seconds: 0.1, signal }, work)).toEqual({
    profile: null,
    result: 'done',
  })
})
