import { roundTripChannel, type SessionStoreOptions } from '@onetrip/session-store'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'
import { messagesOf, readyStore } from '../../session-store/test/fixture.ts'
import type { CommandRunner } from '../src/express.ts'

export { SECRET } from '../../session-store/test/fixture.ts'

/** A store that is ready, closed when the current test ends. */
export const storeForThisTest = (socket: string, options: Partial<SessionStoreOptions> = {}) =>
  readyStore({ redis: `unix://${socket}`, ...options })

/** A Redis for one test file, emptied before each test. */
export function sessionServer() {
  const server = redisOfThisFile()
  return {
    get redis() {
      return server.redis
    },
    get socket() {
      return server.socket
    },
    start: (options?: Partial<SessionStoreOptions>) => storeForThisTest(server.socket, options),
    /** All keys, sorted, and their values. */
    async dump(): Promise<Record<string, unknown>> {
      const keys = (await server.redis.keys('*')).sort()
      const values = await Promise.all(keys.map((key) => contents(server.redis, key)))
      return Object.fromEntries(keys.map((key, index) => [key, values[index]]))
    },
  }
}

async function contents(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key)
  if (type === 'hash') return await redis.hgetall(key)
  return type === 'zset' ? await redis.zrange(key, '0', '-1') : await redis.get(key)
}

/** A session that has ended, in Redis. */
export const ended = { '': '' }

/** The warnings of the process until the current test ends. */
export function warningsOfThisTest(): Error[] {
  const warnings: Error[] = []
  const listen = (warning: Error) => void warnings.push(warning)
  process.on('warning', listen)
  onTestFinished(() => void process.off('warning', listen))
  return warnings
}

/** The round trips of the store until the current test ends. */
export const roundTripsOfThisTest = (): unknown[] => messagesOf(roundTripChannel)

const FATAL = ['uncaughtException', 'unhandledRejection']

/** Collects errors, until this test ends, that would otherwise end the process. */
export function fatalErrorsOfThisTest(): unknown[] {
  const errors: unknown[] = []
  for (const event of FATAL) {
    const listeners = process.listeners(event)
    process.removeAllListeners(event)
    process.on(event, (error) => errors.push(error))
    onTestFinished(() => {
      process.removeAllListeners(event)
      for (const listener of listeners) process.on(event, listener as () => void)
    })
  }
  return errors
}

/** Does something else before the store runs this script for the first time. */
export function justBefore(
  script: string,
  store: CommandRunner,
  act: () => Promise<unknown>,
): CommandRunner {
  let isDone = false
  return {
    run: async (operation) => {
      const isNext = operation.commands.some(([, text]) => text === script)
      if (isNext && !isDone) {
        isDone = true
        await act()
      }
      return await store.run(operation)
    },
  }
}
