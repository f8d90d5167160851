import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { parseInfo } from '@onetrip/session-store'
import { freePorts } from '@onetrip/stack/ports.ts'
import { redisForThisTest, type TestRedis, testRedis } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { generateLoad, holdConnections } from '../../src/drivers/redis/generator/load.ts'
import { generatorProgram } from '../../src/drivers/redis/generator/program.ts'
import { fillKeys, keyName } from '../../src/drivers/redis/keys.ts'

const { signal } = new AbortController()

// One Redis for all tests that leave it as it was.
let redis: TestRedis
let port: number
let client: Redis

beforeAll(async () => {
  const [free = 0] = await freePorts(1)
  port = free
  redis = await testRedis({ port })
  client = new Redis(redis.socket)
})

afterAll(async () => {
  client.disconnect()
  await redis.stop()
})

/** A counter of INFO. */
async function counter(name: string): Promise<number> {
  return Number(parseInfo(await client.info()).get(name))
}

describe('short connections', () => {
  test.for(['tcp', 'unix'] as const)('over %s: one per command, as many as wanted', async (way) => {
    await client.flushall()
    const before = await counter('total_connections_received')
    const load = await generateLoad({
      target: way === 'tcp' ? { port } : redis,
      mode: 'short',
      connections: 20,
      end: { replies: 500 },
      command: ['SET', '{key}', 'v'],
      keys: 10,
      signal,
    })
    expect(load).toMatchObject({ completed: 500, errors: {}, replyErrors: 0 })
    expect(load.latency.p99).toBeGreaterThan(0)
    expect(load.latency.below1 + load.latency.from1To2 + load.latency.above2).toBeCloseTo(1)
    expect(load.cpuSeconds).toBeGreaterThan(0)
    expect((await counter('total_connections_received')) - before).toBe(500)
    expect((await client.keys('*')).toSorted()).toEqual(
      Array.from({ length: 10 }, (_, index) => keyName(index)),
    )
  })

  test('that nobody takes are counted by what is wrong', async () => {
    const [port = 0] = await freePorts(1)
    const load = await generateLoad({
      target: { port },
      mode: 'short',
      connections: 2,
      end: { seconds: 0.1 },
      command: ['PING'],
      signal,
    })
    expect(load.completed).toBe(0)
    const kinds = Object.keys(load.errors)
    expect(kinds.length).toBeGreaterThan(0)
    for (const kind of kinds) expect(kind).toMatch(/^(connect|send) ECONNREFUSED$/)
  })

  test('come from several addresses', async () => {
    const fleet = await holdConnections({ port }, 300, signal)
    onTestFinished(() => fleet.close())
    const list = String(await client.client('LIST'))
    const addresses = new Set(Array.from(list.matchAll(/ addr=(127[\d.]+):/g), ([, ip]) => ip))
    expect(addresses.size).toBe(200)
  })
})

describe('long connections', () => {
  test('read replies of every kind, however long', async () => {
    await fillKeys(redis, 1, 1_000_000) // more than the generator reads at once
    await client.rpush('list', 'a', '', 'c')
    const commands = [
      ['GET', '{key}'],
      ['GET', 'none'],
      ['MGET', '{key}', 'none', '{key}'],
      ['LRANGE', 'list', '0', '-1'],
      ['LRANGE', 'none', '0', '-1'],
      ['LLEN', 'list'],
      ['COMMAND', 'DOCS', 'GET'], // arrays within arrays
    ]
    for (const command of commands) {
      const before = await counter('total_commands_processed')
      const load = await generateLoad({
        ...{ target: redis, mode: 'long', connections: 3, end: { replies: 30 } },
        ...{ command, signal },
      })
      expect(load, command.join(' ')).toMatchObject({ completed: 30, replyErrors: 0, errors: {} })
      // One more for INFO; as many as were in flight may come after the last that was waited for.
      const sent = (await counter('total_commands_processed')) - before - 1
      expect(sent).toBe(30)
    }
  })

  test("count Redis's errors, and keep the first", async () => {
    const load = await generateLoad({
      ...{ target: redis, mode: 'long', connections: 2, end: { replies: 10 } },
      ...{ command: ['NONSENSE'], signal },
    })
    expect(load).toMatchObject({ completed: 10, replyErrors: 10 })
    expect(load.firstReplyError).toMatch(/^-ERR unknown command/)
  })

  test('at a rate send no more than that', async () => {
    const load = await generateLoad({
      ...{ target: redis, mode: 'long', connections: 5, end: { seconds: 0.5 } },
      ...{ command: ['PING'], rate: 200, signal },
    })
    expect(load.completed).toBeGreaterThan(0)
    expect(load.completed).toBeLessThanOrEqual(200 * load.seconds + 5)
  })

  test('end when they are told to', async () => {
    const stop = new AbortController()
    const load = await generateLoad({
      ...{ target: redis, mode: 'long', connections: 1, end: { seconds: 600 } },
      ...{ command: ['PING'], signal: stop.signal },
      onProgress: () => stop.abort(),
    })
    expect(load.completed).toBeGreaterThan(0)
    expect(load.seconds).toBeLessThan(600)
  })
})

describe('idle connections', () => {
  test('are there until they are closed', async () => {
    await expect.poll(() => counter('connected_clients')).toBe(1) // what asks
    const fleet = await holdConnections(redis, 500, signal)
    expect(await counter('connected_clients')).toBe(501)
    await fleet.close()
    await expect.poll(() => counter('connected_clients')).toBe(1)
  })

  test('that Redis does not take: says so', async () => {
    const small = await redisForThisTest({ config: { maxclients: '100' } })
    // Redis writes why and closes; over TCP, with our PING unread, that may overtake what it wrote.
    await expect(holdConnections(small, 200, signal)).rejects.toThrow(
      /200 idle connections cannot be had: .*(max number of clients|ECONNRESET)/,
    )
  })

  test('that get lost are reported', async () => {
    const lost = Promise.withResolvers<Error>()
    const fleet = await holdConnections(redis, 3, signal, lost.resolve)
    onTestFinished(() => fleet.close())
    await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    expect((await lost.promise).message).toMatch(/Idle connections were lost: .*closed/)
  })
})

test.for([
  [['--port', '1', '--host', '10.0.0.1'], 'not an address of 127.0.0.0/8: 10.0.0.1'],
  [['--port', '1', '--host', 'example.org'], 'not an address of 127.0.0.0/8'],
  [['--port', '70000'], '--port: 70000'],
  [['--seconds', '1'], 'give one target'],
  [['--unix', '/s', '--mode', 'short'], 'give one end'],
  [['--unix', '/s', '--mode', 'fast'], 'no such mode: fast'],
] as const)('the generator refuses %j', async ([args, message]) => {
  const generator = await generatorProgram()
  await expect(promisify(execFile)(generator, [...args])).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining(message),
  })
})

test('a process is isolated in a network of its own, or told that it is not', async () => {
  const generator = await generatorProgram()
  const script = 'echo "$ONETRIP_NETWORK"; cat /proc/self/net/dev'
  const { stdout } = await promisify(execFile)(generator, ['isolate', 'sh', '-c', script])
  const [network, , , ...interfaces] = stdout.trim().split('\n')
  if (network === 'own') expect(interfaces.map((line) => line.trim().slice(0, 3))).toEqual(['lo:'])
  else expect(network).toBe('shared')
})
