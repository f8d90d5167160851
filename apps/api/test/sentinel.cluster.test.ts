import { MASTER_NAME, testSentinels } from '@onetrip/stack/testing/sentinel.ts'
import { expect, onTestFinished, test } from 'vitest'
import { errorTable } from '../src/errors.ts'
import { apiProcessForThisTest } from './api-process.ts'
import { ask, connectionsOf, logIn } from './client.ts'

/** Sentinels that a busy machine holds up for two seconds wait for thirty (their TILT mode). */
const failover = { timeout: 90_000 }

// The same under load: packages/cluster/test/sentinel.cluster.test.ts.
test(
  'the primary is killed: every request is answered, and the new primary is used',
  async () => {
    const redis = await testSentinels()
    onTestFinished(() => redis.stop())
    const [primary, replica] = redis.servers
    const sentinels = redis.sentinels.map(({ port }) => `127.0.0.1:${port}`).join()
    const { api, url } = await apiProcessForThisTest({
      REDIS_URL: `redis+sentinel://${sentinels}/${MASTER_NAME}`,
      REDIS_DEADLINE_MS: '2000',
    })
    const token = await logIn(url)
    const view = () => ask(`${url}/views`, { token, body: { item: 'book' } })
    expect(await view()).toMatchObject({ status: 200, views: 1 })
    expect(api.lastLines.join('\n')).toContain(`127.0.0.1:${primary?.port}`)
    expect(await primary?.admin.wait(1, 10_000)).toBe(1)
    primary?.program.signal('SIGKILL')
    await primary?.program.exited
    const codes = new Set(Object.keys(errorTable))
    const answered = async () => {
      const { status, code } = await view()
      if (status !== 200) expect([status, codes.has(String(code))]).toEqual([503, true])
      return status
    }
    expect(await answered()).toBe(503)
    await expect.poll(answered, failover).toBe(200)
    expect(await replica?.admin.role()).toContain('master')
    await expect.poll(() => connectionsOf(url)).toEqual({ ready: 1, down: 0 })
    expect((await ask(`${url}/readyz`)).status).toBe(200)
    api.signal('SIGTERM')
    expect(await api.exited).toEqual({ code: 0, signal: null })
  },
  2 * failover.timeout,
)
