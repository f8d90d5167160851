import { join } from 'node:path'
import { parseInfo } from '@onetrip/session-store'
import { freePorts } from '@onetrip/stack/ports.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { redisForThisTest, redisOfThisFile, testRedis } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  generateLoad,
  holdConnections,
  type LoadOptions,
} from '../src/drivers/redis/generator/load.ts'
import { fillKeys, keyName } from '../src/drivers/redis/servers.ts'
import { LIST } from '../src/experiments/redis/threads/commands.ts'
import { countInRedis } from '../src/experiments/redis/threads/threads.ts'

const server = redisOfThisFile()
const { signal } = new AbortController()

const shortly: Omit<LoadOptions, 'target' | 'command'> = {
  mode: 'short',
  connections: 3,
  end: { replies: 200 },
  signal,
}

test('short connections send the given number of commands, with random keys', async () => {
  await fillKeys(server.socket, 10, 5_000)
  const command = ['MGET', '{key}', '{key}', 'none']
  const load = await generateLoad({ ...shortly, target: server, command, keys: 10 })
  expect(load).toMatchObject({ completed: 200, errors: {} })
  expect(load.latency.p50).toBeGreaterThan(0)
  expect(load.latency.p99).toBeLessThanOrEqual(load.latency.max)
  expect(load.demand).toBeGreaterThan(0)
  const stats = await server.redis.info('everything')
  expect(stats).toMatch(/^cmdstat_mget:calls=200,/m)
  expect(Number(/^keyspace_hits:(\d+)/m.exec(stats)?.[1])).toBe(400)
})

/** The number of calls of a command since the last CONFIG RESETSTAT. */
async function callsOf(redis: Redis, command: string): Promise<number> {
  const stats = parseInfo(await redis.info('commandstats'))
  return Number(/calls=(\d+)/.exec(stats.get(`cmdstat_${command}`) ?? '')?.[1] ?? 0)
}

test('the commands of a pipeline take turns', async () => {
  await server.redis.config('RESETSTAT')
  const command = ['SET', '{key}', '{value:100}', ';', 'GET', '{key}', ';', 'NONE']
  const options = { ...shortly, mode: 'long', target: server, pipeline: 8 } as const
  const load = await generateLoad({ ...options, command, end: { replies: 24 * 8 } })
  const calls = await Promise.all(['set', 'get'].map((name) => callsOf(server.redis, name)))
  expect([load.completed, ...calls]).toEqual([192, 64, 64])
  expect(load.errors).toEqual({ 'error reply': 64 })
  expect(await server.redis.strlen(keyName(0))).toBe(100)
})

test('sends a request in pieces if it is larger than the socket buffer', async () => {
  const command = ['SET', '{key}', '{value:2000000}']
  const options = { ...shortly, mode: 'long', target: server, pipeline: 8, keys: 2 } as const
  const load = await generateLoad({ ...options, command, end: { replies: 48 } })
  expect(load).toMatchObject({ completed: 48, errors: {} })
  expect(await server.redis.strlen(keyName(1))).toBe(2_000_000)
})

describe('discarded replies', () => {
  const bytes = 20_000
  const discarding: Omit<LoadOptions, 'target' | 'end'> = {
    mode: 'discard',
    connections: 4,
    pipeline: 4,
    command: ['GET', '{key}'],
    signal,
  }

  let redis: Redis
  let target: { port: number }

  beforeAll(async () => {
    const [port = 0] = await freePorts(1)
    const { socket, stop } = await testRedis({ port })
    redis = new Redis(socket)
    target = { port }
    return async () => {
      redis.disconnect()
      await stop()
    }
  })

  beforeEach(async () => {
    await fillKeys(redis.options.path ?? '', 10, bytes)
    await redis.lpush('list', 'x')
    await redis.config('RESETSTAT')
  })

  test('are counted by their bytes', async () => {
    const end = { seconds: 0.3 }
    const load = await generateLoad({ ...discarding, target, end, keys: 10 })
    expect(load.errors).toEqual({})
    expect(load.completed).toBeGreaterThan(100)
    expect(await callsOf(redis, 'get')).toBe(load.completed)
  })

  test.for([
    ['a longer one', ['set', keyName(0), 'x'.repeat(bytes + 1)]],
    ['a shorter one', ['set', keyName(0), 'x'.repeat(bytes - 1)]],
    ['a missing key', ['del', keyName(0)]],
    ['an error', ['copy', 'list', keyName(0), 'REPLACE']],
  ] as const)('%s among them is detected', async ([, change]) => {
    const done = new AbortController()
    const load = generateLoad({ ...discarding, target, end: {}, signal: done.signal })
    await expect.poll(() => callsOf(redis, 'get')).toBeGreaterThan(100)
    await redis.multi([[...change], ['config', 'RESETSTAT']]).exec()
    await expect.poll(() => callsOf(redis, 'get')).toBeGreaterThan(0) // after the change
    done.abort()
    const { errors } = await load
    expect(errors['reply of another length']).toBeGreaterThan(0)
  })

  test('countInRedis reads failures, CPU time and traffic from INFO', async () => {
    const { redis, socket } = server
    const { result, failures } = await countInRedis({ socket }, async () => {
      await redis.mget('a', 'b', LIST)
      await redis.call('NONE').catch(() => {})
      return 'done'
    })
    expect([result, failures]).toEqual(['done', { 'error reply': 1, 'key not found': 3 }])
    const sets = () =>
      Promise.all(Array.from({ length: 2_000 }, () => redis.set('a', 'x'.repeat(1_000))))
    const fine = await countInRedis({ socket }, sets)
    expect(fine.failures).toEqual({})
    expect(fine.commandBytes).toBeGreaterThan(1_000)
    expect(fine.commandBytes).toBeLessThan(1_100)
    // The kernel counts user time by sampling: a short run may be all user time, or none.
    expect(fine.userShare).toBeGreaterThanOrEqual(0)
    expect(fine.userShare).toBeLessThanOrEqual(1)
  })
})

test('counts errors by kind', async () => {
  const refused = await generateLoad({ ...shortly, target: server, command: ['NONE'] })
  expect(refused).toMatchObject({ completed: 200, errors: { 'error reply': 200 } })
  const options = { ...shortly, end: { seconds: 0.1 }, command: ['PING'] }
  const socket = join(await temporaryFolder(), 'nobody')
  const { completed, errors } = await generateLoad({ ...options, target: { socket } })
  expect([completed, Object.keys(errors)]).toEqual([0, ['connect ENOENT']])
})

test('opens all idle connections, or fails with the reason', async () => {
  const small = await redisForThisTest({ config: { 'tcp-backlog': '4' } })
  const fleet = await holdConnections({ socket: small.socket }, 300, signal)
  await fleet.stop()
  await server.redis.config('SET', 'maxclients', 20)
  await expect(holdConnections({ socket: server.socket }, 50, signal)).rejects.toThrow(
    /50 idle connections exited before.*-ERR max number of clients reached/s,
  )
})
