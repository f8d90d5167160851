import { freePorts } from '@onetrip/stack/ports.ts'
import type { Program } from '@onetrip/stack/program.ts'
import { audit } from '@onetrip/stack/testing/audit/audit.ts'
import { Ledger } from '@onetrip/stack/testing/audit/ledger.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { logIn, startViewing } from '@onetrip/stack/testing/viewing.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { startApiProcess } from '../test/api-process.ts'
import { balancerForThisTest } from './balancer.ts'

/** Much longer than the balancer needs to notice. */
const DRAIN_MS = '5000'

// docs/runbook.md, "Rolling upgrade".
test('all APIs behind a load balancer are replaced one by one, and no request fails', async () => {
  const redis = await redisForThisTest()
  const ports = await freePorts(2)
  const start = (port: number) =>
    startApiProcess({
      PORT: String(port),
      REDIS_URL: `unix://${redis.socket}`,
      SHUTDOWN_DRAIN_MS: DRAIN_MS,
    })
  const apis: Program[] = await Promise.all(ports.map(start))
  onTestFinished(async () => void (await Promise.all(apis.map((api) => api.stop()))))
  const balancer = await balancerForThisTest(ports.map((port) => `http://127.0.0.1:${port}`))
  await expect.poll(balancer.serving).toHaveLength(2)
  const viewers = await logIn(balancer.url, 8)
  const viewing = startViewing({ url: () => balancer.url, viewers })

  for (const [index, port] of ports.entries()) {
    const before = viewing.views.length
    await expect.poll(() => viewing.views.length).toBeGreaterThan(before + 100)
    const old = apis[index]
    old?.signal('SIGTERM')
    expect(await old?.exited).toEqual({ code: 0, signal: null })
    apis[index] = await start(port)
    await expect.poll(balancer.serving).toHaveLength(2)
  }

  const views = await viewing.stop()
  expect(views.filter(({ outcome }) => outcome !== 'acknowledged')).toEqual([])
  const admin = new Redis(redis.socket)
  onTestFinished(() => admin.disconnect())
  expect((await audit(admin, Ledger.of(views))).discrepancies).toEqual([])
})
