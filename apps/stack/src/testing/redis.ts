import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, onTestFinished } from 'vitest'
import type { Program } from '../program.ts'
import { type RedisOptions, startRedis } from '../start-redis.ts'

export interface TestRedis {
  /** Path of the Unix socket. */
  readonly socket: string
  readonly program: Program
  /** Waits until it has exited, then starts it again with the same socket and data. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/**
 * Starts a Redis for tests, on a Unix socket in a new directory, and on `port` if given. `stop()` stops it and removes
 * the directory.
 */
export async function testRedis(
  options: Partial<Pick<RedisOptions, 'build' | 'port' | 'config'>> = {},
): Promise<TestRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'onetrip-redis-'))
  const socket = join(directory, 'redis.sock')
  const start = () => startRedis({ ...options, socket, directory })
  let program = await start()
  return {
    socket,
    get program() {
      return program
    },
    async restart() {
      await program.exited
      program = await start()
    },
    async stop() {
      program.signal('SIGCONT') // a paused process handles SIGTERM only when it continues
      await program.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Like `testRedis`; stopped after the current test. */
export async function redisForThisTest(
  options?: Parameters<typeof testRedis>[0],
): Promise<TestRedis> {
  const redis = await testRedis(options)
  onTestFinished(() => redis.stop())
  return redis
}

/**
 * A Redis and a client for all tests of a file. The data is removed before each test. Call it at the top level of the
 * file; use its properties in tests and hooks.
 */
export function redisOfThisFile() {
  let server: TestRedis
  let redis: Redis

  beforeAll(async () => {
    server = await testRedis()
    redis = new Redis(server.socket)
  })

  beforeEach(async () => {
    await redis.flushall()
  })

  afterAll(async () => {
    redis.disconnect()
    await server.stop()
  })

  return {
    get redis(): Redis {
      return redis
    },
    /** Path of the Unix socket. */
    get socket(): string {
      return server.socket
    },
    /** Stops the process, so that Redis does not answer. Returns a function that continues it. */
    pause(): () => void {
      const { program } = server
      const resume = () => program.signal('SIGCONT')
      onTestFinished(resume)
      program.signal('SIGSTOP')
      return resume
    },
  }
}

/** All keys of a Redis with their values as DUMP returns them, in hex. */
export async function dumpOf(redis: Redis): Promise<Record<string, string>> {
  const keys = (await redis.keys('*')).sort()
  const values = await Promise.all(keys.map((key) => redis.dumpBuffer(key)))
  return Object.fromEntries(keys.map((key, index) => [key, values[index]?.toString('hex') ?? '']))
}
