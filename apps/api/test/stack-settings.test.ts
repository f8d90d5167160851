import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { redisOfEnvironment } from '@onetrip/stack/address.ts'
import { apiSettings } from '@onetrip/stack/api.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import fc from 'fast-check'
import { afterEach, expect, test, vi } from 'vitest'
import { loadConfig } from '../src/config.ts'
import { processCount } from '../src/workers/supervise.ts'

const SESSION_SECRETS = 'x'.repeat(32)

afterEach(() => void vi.unstubAllEnvs())

function orRejected<T>(read: () => T): T | 'rejected' {
  try {
    return read()
  } catch {
    return 'rejected'
  }
}

test('the stack and the API parse WORKERS and REDIS_POOL_SIZE in the same way', () => {
  const words = ['auto', 'AUTO', '', ' 2', '02', '1.5', '-1', '0', 'NaN', '0x2', '1e1', '99', '100']
  const text = fc.oneof(fc.constantFrom(...words), fc.integer({ min: -2, max: 120 }).map(String))
  fc.assert(
    fc.property(fc.option(text), fc.option(text), (workers, poolSize) => {
      const env = {
        ...(workers !== null && { WORKERS: workers }),
        ...(poolSize !== null && { REDIS_POOL_SIZE: poolSize }),
      }
      const api = orRejected(() => {
        const config = loadConfig({ SESSION_SECRETS, ...env })
        return { workers: processCount(config.WORKERS), poolSize: config.REDIS_POOL_SIZE }
      })
      const stack = orRejected(() => apiSettings(env))
      // The stack may also reject an unusual spelling of a number, such as 1e1.
      if (stack === 'rejected' && api !== 'rejected') {
        expect(String(api.poolSize)).not.toBe(poolSize ?? '1')
      } else expect(stack).toEqual(api)
    }),
    { numRuns: 300 },
  )
  expect(() => apiSettings({ WORKERS: 'two' })).toThrow('WORKERS is "two": it must be auto')
})

test('the stack and the API read the same Redis address and password file', async () => {
  const file = join(await temporaryFolder(), 'redis-password')
  await writeFile(file, 'a/b c\n')
  const env = { REDIS_URL: 'redis://api@127.0.0.1:6379', REDIS_PASSWORD_FILE: file }
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  expect(await redisOfEnvironment()).toBe(loadConfig({ SESSION_SECRETS, ...env }).REDIS_URL)
  await writeFile(file, '\n')
  await expect(redisOfEnvironment()).rejects.toThrow(`${file} is empty`)
  vi.stubEnv('REDIS_URL', '')
  expect(await redisOfEnvironment()).toBeUndefined()
})
