import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { apiProcessForThisTest, failedStart } from './api-process.ts'
import { ask, logIn, metricsOf, upOf } from './client.ts'

const cluster = clusterOfThisFile()
const nodes = () => cluster.nodes.map(({ address }) => address)

test('if the target is down, an API does not start, and the error names the target', async () => {
  const { socket } = await redisForThisTest()
  const { code, stderr } = await failedStart({
    REDIS_URL: `unix://${socket}`,
    REDIS_MIGRATE_TO: 'unix:///nowhere/redis.sock',
    REDIS_MIGRATE_HOME: 'source',
    STARTUP_DEADLINE_MS: '500',
  })
  expect(code).toBe(1)
  expect(stderr).toContain('the target of the migration: not sent to Redis')
})

test.each(['batch', 'naive'])(
  'during a migration, an API reports both sides: %s',
  async (STRATEGY) => {
    const old = await redisForThisTest()
    const { api, url } = await apiProcessForThisTest({
      REDIS_URL: `unix://${old.socket}`,
      STRATEGY,
      REDIS_INFO_INTERVAL_SECONDS: '1',
      REDIS_MIGRATE_TO: `redis+cluster://${nodes().join()}`,
      REDIS_MIGRATE_HOME: 'target',
      JANITOR_INTERVAL_SECONDS: '0',
    })
    const targets = nodes()
    const allUp = Object.fromEntries([...targets, old.socket].map((node) => [node, 1]))
    await expect.poll(() => upOf(url)).toEqual(allUp)
    expect(await ask(`${url}/readyz`)).toEqual({ status: 200, strategy: STRATEGY })
    const info = (await metricsOf(url)).find(({ name }) => name === 'onetrip_info')
    expect(info?.labels).toMatchObject({ topology: 'cluster', transport: 'tcp' })
    for (const node of [...targets, old.socket]) expect(api.lastLines.join('\n')).toContain(node)

    const token = await logIn(url)
    old.program.signal('SIGKILL')
    await expect
      .poll(() => ask(`${url}/readyz`))
      .toEqual({ status: 200, strategy: STRATEGY, nodes: 4, unavailable: 1 })
    await expect.poll(() => upOf(url)).toEqual({ ...allUp, [old.socket]: 0 })
    expect(await ask(`${url}/me`, { token })).toMatchObject({ user: 'ada' })
  },
)
