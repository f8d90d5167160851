import { parseMetrics } from '@onetrip/stack/metrics.ts'
import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { apiProcessForThisTest, failedStart } from './api-process.ts'

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
    const get = async (path: string) => (await fetch(`${url}${path}`)).json()
    const metrics = async () => parseMetrics(await (await fetch(`${url}/metrics`)).text())
    const up = async () => {
      const found = (await metrics()).filter(({ name }) => name === 'onetrip_redis_up')
      return Object.fromEntries(found.map(({ labels, value }) => [labels.node, value]))
    }
    const targets = nodes()
    const allUp = Object.fromEntries([...targets, old.socket].map((node) => [node, 1]))
    await expect.poll(up).toEqual(allUp)
    expect(await get('/readyz')).toEqual({ status: 'ready', strategy: STRATEGY })
    const info = (await metrics()).find(({ name }) => name === 'onetrip_info')
    expect(info?.labels).toMatchObject({ topology: 'cluster', transport: 'tcp' })
    for (const node of [...targets, old.socket]) expect(api.lastLines.join('\n')).toContain(node)

    const login = await fetch(`${url}/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ user: 'ada' }),
    })
    const { token } = (await login.json()) as { token: string }
    old.program.signal('SIGKILL')
    await expect
      .poll(() => get('/readyz'))
      .toEqual({ status: 'degraded', strategy: STRATEGY, nodes: 4, unavailable: 1 })
    await expect.poll(up).toEqual({ ...allUp, [old.socket]: 0 })
    const me = await fetch(`${url}/me`, { headers: { authorization: `Bearer ${token}` } })
    expect(await me.json()).toMatchObject({ user: 'ada' })
  },
)
