import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { redisOfEnvironment } from '@onetrip/stack/address.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { afterEach, expect, test, vi } from 'vitest'
import { loadConfig } from '../src/config.ts'

const SESSION_SECRETS = 'x'.repeat(32)

afterEach(() => void vi.unstubAllEnvs())

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
