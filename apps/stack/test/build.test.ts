import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { buildRedis } from '../src/start-redis.ts'
import { processesOf, temporaryFolder } from '../src/testing/folders.ts'

afterEach(() => void vi.unstubAllEnvs())

/** A folder in which builds wait for the lock. */
async function lockedHome(): Promise<string> {
  const home = await temporaryFolder()
  await mkdir(join(home, 'redis', '.lock'), { recursive: true })
  vi.stubEnv('ONETRIP_HOME', home)
  return home
}

test.runIf(process.platform === 'linux')('an abort ends a build', async () => {
  const home = await lockedHome()
  const controller = new AbortController()
  const building = buildRedis('patched', controller.signal)
  const builds = async () => (await processesOf(home)).filter((pid) => pid !== process.pid)
  await expect.poll(builds).toHaveLength(1)
  controller.abort(new Error('enough'))
  await expect(building).rejects.toThrow('enough')
  expect(await builds()).toEqual([])
})

test('an abort before the build starts prevents it', async () => {
  await lockedHome()
  const controller = new AbortController()
  const building = buildRedis('patched', controller.signal)
  controller.abort(new Error('enough'))
  await expect(building).rejects.toThrow('enough')
})
