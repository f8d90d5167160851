import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import {
  generateLoad,
  holdConnections,
  type LoadOptions,
} from '../src/drivers/redis/generator/load.ts'
import { fillKeys } from '../src/drivers/redis/servers.ts'

const server = redisOfThisFile()
const { signal } = new AbortController()

const shortly: Omit<LoadOptions, 'target' | 'command'> = {
  ...{ mode: 'short', connections: 3, end: { replies: 200 }, signal },
}

test('short connections send the command as often as was asked for, with random keys', async () => {
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

test('long connections keep to a rate', async () => {
  const end = { seconds: 0.5 }
  const options = { ...shortly, mode: 'long', target: server, end, rate: 200 } as const
  const { completed } = await generateLoad({ ...options, command: ['PING'] })
  expect(completed).toBeGreaterThan(10)
  expect(completed).toBeLessThanOrEqual(103) // one for each connection, then one every 5 ms
})

test('errors are counted by kind', async () => {
  const refused = await generateLoad({ ...shortly, target: server, command: ['NONE'] })
  expect(refused).toMatchObject({ completed: 200, errors: { 'error reply': 200 } })
  const options = { ...shortly, end: { seconds: 0.1 }, command: ['PING'] }
  const socket = join(await temporaryFolder(), 'nobody')
  const { completed, errors } = await generateLoad({ ...options, target: { socket } })
  expect([completed, Object.keys(errors)]).toEqual([0, ['connect ENOENT']])
})

test('idle connections are all accepted, or an error says why not', async () => {
  const small = await redisForThisTest({ config: { 'tcp-backlog': '4' } })
  const fleet = await holdConnections(small.socket, 300, signal)
  await fleet.stop()
  await server.redis.config('SET', 'maxclients', 20)
  await expect(holdConnections(server.socket, 50, signal)).rejects.toThrow(
    /50 idle connections ended before.*-ERR max number of clients reached/s,
  )
})
