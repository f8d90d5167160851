import { setTimeout as delay } from 'node:timers/promises'
import { type Metric, parseMetrics } from '@onetrip/stack/metrics.ts'
import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { FastifyInstance } from 'fastify'
import { expect, test } from 'vitest'
import { appForThisTest, bearer, login, view } from './support.ts'

const server = redisOfThisFile()

const metricsOf = async (app: FastifyInstance) => parseMetrics((await app.inject('/metrics')).body)

const values = (metrics: readonly Metric[], name: string, labels: Record<string, string> = {}) =>
  metrics
    .filter((metric) => metric.name === name)
    .filter((metric) => Object.entries(labels).every(([key, is]) => metric.labels[key] === is))
    .map(({ value }) => value)

test('requests are counted by route and status, not by URL, with their duration in seconds', async () => {
  const app = await appForThisTest(server.socket)
  app.get('/slow', async () => await delay(40))
  const token = await login(app)
  await view(app, token)
  await view(app, 'x')
  await app.inject({ method: 'DELETE', url: '/views?x=1', headers: bearer(token) })
  for (let index = 0; index < 20; index++) await app.inject(`/nowhere/${index}`)
  await app.inject('/slow')
  const metrics = await metricsOf(app)
  const name = 'http_request_duration_seconds'
  const counts = metrics.filter((metric) => metric.name === `${name}_count`)
  expect(counts.map(({ labels, value }) => [...Object.values(labels), value])).toEqual([
    ['POST', '/login', '200', 1],
    ['POST', '/views', '200', 1],
    ['POST', '/views', '401', 1],
    ['OTHER', 'unmatched', '404', 21],
    ['GET', '/slow', '200', 1],
  ])
  const [sum = 0] = values(metrics, `${name}_sum`, { route: '/slow' })
  expect(sum).toBeGreaterThan(0.03)
  expect(sum).toBeLessThan(30)
  expect(values(metrics, `${name}_bucket`, { route: '/slow', le: '0.025' })).toEqual([0])
})

test('measures batches, errors and connections of the store', async () => {
  const redis = await redisForThisTest()
  const app = await appForThisTest(redis.socket)
  const token = await login(app)
  const before = await metricsOf(app)
  await Promise.all(Array.from({ length: 10 }, () => view(app, token)))
  const after = await metricsOf(app)
  const grown = (name: string) => (values(after, name)[0] ?? 0) - (values(before, name)[0] ?? 0)
  expect(grown('onetrip_store_batch_operations_count')).toBe(1)
  expect(grown('onetrip_store_batch_operations_sum')).toBe(10)
  expect(grown('onetrip_store_batch_duration_seconds_count')).toBe(1)
  expect(grown('onetrip_store_round_trips_total')).toBe(1)
  expect(grown('onetrip_store_commands_total')).toBe(50)
  expect(grown('onetrip_store_connections_opened_total')).toBe(0)
  expect(values(after, 'onetrip_store_in_flight')).toEqual([0])
  expect(values(after, 'onetrip_event_loop_active_seconds_total')[0]).toBeGreaterThan(0)

  redis.program.signal('SIGKILL')
  await redis.program.exited
  await expect.poll(async () => (await view(app, token)).json().code).toBe('ONETRIP_NOT_SENT')
  const down = await metricsOf(app)
  expect(values(down, 'onetrip_store_pool_connections', { state: 'down' })).toEqual([1])
  expect(values(down, 'onetrip_store_connections_closed_total')).toEqual([1])
  expect(
    values(down, 'onetrip_store_errors_total', { code: 'ONETRIP_NOT_SENT' })[0],
  ).toBeGreaterThan(0)
})

test('measures runs of the janitor and what it removed', async () => {
  const app = await appForThisTest(server.socket)
  await login(app)
  await login(app)
  await app.store.janitor({ maxSessions: 1 }).runOnce()
  const metrics = await metricsOf(app)
  expect(values(metrics, 'onetrip_janitor_runs_total', { result: 'worked' })).toEqual([1])
  expect(values(metrics, 'onetrip_janitor_removed_total', { kind: 'session' })).toEqual([1])
  const [lastRun = 0] = values(metrics, 'onetrip_janitor_last_run_timestamp_seconds')
  expect(Math.abs(Date.now() / 1000 - lastRun)).toBeLessThan(60)
})
