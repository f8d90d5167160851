import { setTimeout as delay } from 'node:timers/promises'
import { type Metric, parseMetrics } from '@onetrip/stack/metrics.ts'
import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { sidecarForThisTest } from '@onetrip/stack/testing/sidecar.ts'
import { AggregatorRegistry } from 'prom-client'
import { expect, onTestFinished, test } from 'vitest'
import { pollRedis } from '../src/metrics/redis-poller.ts'
import { createRegistry } from '../src/metrics/registry.ts'
import { appForThisTest, bearer, login } from './support.ts'

const server = redisOfThisFile()

type App = Awaited<ReturnType<typeof appForThisTest>>

const metricsOf = async (app: App) => parseMetrics((await app.inject('/metrics')).body)

const values = (metrics: readonly Metric[], name: string, labels: Record<string, string> = {}) =>
  metrics
    .filter((metric) => metric.name === name)
    .filter((metric) => Object.entries(labels).every(([key, is]) => metric.labels[key] === is))
    .map(({ value }) => value)

test('requests are counted by route and status, not by URL', async () => {
  const app = await appForThisTest(server.socket)
  const headers = bearer(await login(app))
  const payload = { item: 'book' }
  await app.inject({ method: 'POST', url: '/views', headers, payload })
  await app.inject({ method: 'POST', url: '/views?x=1', headers, payload })
  await app.inject({ method: 'POST', url: '/views', payload })
  await app.inject({ method: 'DELETE', url: '/views', headers })
  for (let index = 0; index < 20; index++) await app.inject(`/nowhere/${index}`)
  const counts = (await metricsOf(app)).filter(
    ({ name }) => name === 'http_request_duration_seconds_count',
  )
  expect(counts.map(({ labels, value }) => [...Object.values(labels), value])).toEqual([
    ['POST', '/login', '200', 1],
    ['POST', '/views', '200', 2],
    ['POST', '/views', '401', 1],
    ['OTHER', '/views', '405', 1],
    ['OTHER', 'unmatched', '404', 20],
  ])
})

test('request durations are recorded in seconds', async () => {
  const app = await appForThisTest(server.socket)
  app.get('/slow', async () => await delay(40))
  await app.inject('/slow')
  const metrics = await metricsOf(app)
  const of = (suffix: string, labels: Record<string, string> = {}) =>
    values(metrics, `http_request_duration_seconds_${suffix}`, { route: '/slow', ...labels })
  const [sum = 0] = of('sum')
  expect(sum).toBeGreaterThan(0.03)
  expect(sum).toBeLessThan(30)
  expect(of('bucket', { le: '0.025' })).toEqual([0])
  expect(of('bucket', { le: '+Inf' })).toEqual([1])
})

test('all metrics can be merged over processes', async () => {
  const app = await appForThisTest(server.socket)
  const json = await app.metrics.getMetricsAsJSON()
  const twice = parseMetrics(await AggregatorRegistry.aggregate([json, json]).metrics())
  const once = parseMetrics(await app.metrics.metrics())
  expect(values(twice, 'onetrip_info')).toEqual([1])
  expect(values(twice, 'onetrip_store_pool_connections', { state: 'ready' })).toEqual([2])
  const names = (metrics: readonly Metric[]) => new Set(metrics.map(({ name }) => name))
  // prom-client omits the start time of a process when it merges.
  expect([...names(once)].filter((name) => !names(twice).has(name))).toEqual([
    'process_start_time_seconds',
  ])
})

test('measures batches, errors and connections of the store', async () => {
  const redis = await redisForThisTest()
  const app = await appForThisTest(redis.socket)
  const headers = bearer(await login(app))
  const view = () =>
    app.inject({ method: 'POST', url: '/views', headers, payload: { item: 'book' } })
  const before = await metricsOf(app)
  await Promise.all(Array.from({ length: 10 }, view))
  const after = await metricsOf(app)
  const grown = (name: string) => (values(after, name)[0] ?? 0) - (values(before, name)[0] ?? 0)
  expect(grown('onetrip_store_batch_operations_count')).toBe(1)
  expect(grown('onetrip_store_batch_operations_sum')).toBe(10)
  expect(grown('onetrip_store_batch_duration_seconds_count')).toBe(1)
  expect(values(after, 'onetrip_store_in_flight')).toEqual([0])
  expect(values(after, 'onetrip_event_loop_active_seconds_total')[0]).toBeGreaterThan(0)

  redis.program.signal('SIGKILL')
  await redis.program.exited
  await expect.poll(async () => (await view()).json().code).toBe('ONETRIP_NOT_SENT')
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

test('Redis is polled on one connection; an outage and the recovery are logged once each', async () => {
  const redis = await redisForThisTest()
  const registry = createRegistry()
  const lines: string[] = []
  const nodes: unknown[] = []
  const log = ({ node }: { node: string }, message: string) => {
    lines.push(message)
    nodes.push(node)
  }
  const stop = pollRedis({
    locations: [{ url: `unix://${redis.socket}` }],
    intervalSeconds: 0.02,
    deadlineMs: 1_000,
    registry,
    log: { warn: log, info: log } as never,
  })
  onTestFinished(stop)
  const metrics = async () => parseMetrics(await registry.metrics())
  const up = async () => values(await metrics(), 'onetrip_redis_up')
  await expect.poll(up).toEqual([1])
  const found = await metrics()
  expect(values(found, 'onetrip_redis_connected_clients')).toEqual([1])
  expect(values(found, 'onetrip_redis_memory_fragmentation_ratio')[0]).toBeGreaterThan(0)
  expect(values(found, 'onetrip_redis_aof_last_write_ok')).toEqual([1])
  for (const direction of ['input', 'output']) {
    expect(values(found, `onetrip_redis_net_${direction}_bytes_total`)[0]).toBeGreaterThan(0)
  }
  const [user = 0] = values(found, 'onetrip_redis_cpu_user_seconds_total')
  const [kernel = 0] = values(found, 'onetrip_redis_cpu_sys_seconds_total')
  const [both] = values(found, 'onetrip_redis_cpu_seconds_total')
  expect(user + kernel).toBeCloseTo(both ?? -1, 6)
  const memory = async () => values(await metrics(), 'onetrip_redis_mem_clients_normal_bytes')[0]
  await expect.poll(memory).toBeGreaterThan(0) // Redis updates it periodically
  expect(values(found, 'onetrip_redis_client_recent_max_output_buffer_bytes')).toHaveLength(1)
  const infos = async (of: string) =>
    values(await metrics(), `onetrip_redis_commands_${of}`, { cmd: 'info' })[0]
  await expect.poll(() => infos('total')).toBeGreaterThan(1)
  await expect.poll(() => infos('duration_seconds_total')).toBeGreaterThan(0)
  const commands = async () =>
    values(await metrics(), 'onetrip_redis_commands_processed_total')[0] ?? 0
  const before = await commands()
  await expect.poll(commands).toBeGreaterThan(before) // polling continues

  redis.program.signal('SIGKILL')
  await redis.program.exited
  await expect.poll(up).toEqual([0])
  // Absent: rate() would take a counter at 0 for a reset.
  expect(values(await metrics(), 'onetrip_redis_commands_processed_total')).toEqual([])
  expect(values(await metrics(), 'onetrip_redis_commands_total')).toEqual([])
  await redis.restart()
  await expect.poll(up).toEqual([1])
  expect(lines).toEqual(['Redis does not answer', 'Redis answers again'])
  expect(nodes).toEqual([redis.socket, redis.socket])
  expect(values(await metrics(), 'onetrip_redis_up', { node: redis.socket })).toEqual([1])
})

test('polling continues after connections whose handshake got no reply', async () => {
  const sidecar = await sidecarForThisTest(server.socket)
  const registry = createRegistry()
  const failures: unknown[] = []
  const log = { info: () => {}, warn: ({ err }: { err: unknown }) => failures.push(err) } as never
  const locations = [{ url: `redis://127.0.0.1:${sidecar.port}/5` }]
  sidecar.breakDown()
  onTestFinished(pollRedis({ locations, intervalSeconds: 0.02, deadlineMs: 200, registry, log }))
  await sidecar.untilHanging(2)
  expect(failures).toMatchObject([{ message: 'no reply during the handshake' }])
  sidecar.mend()
  const up = async () => values(parseMetrics(await registry.metrics()), 'onetrip_redis_up')
  await expect.poll(up).toEqual([1])
})

test('two databases of one server are counted once', async () => {
  const registry = createRegistry()
  const url = `unix://${server.socket}`
  const log = { info: () => {}, warn: () => {} } as never
  const locations = [{ url }, { url: `${url}?db=1` }, { url: `${url}?db=2` }]
  onTestFinished(pollRedis({ locations, intervalSeconds: 60, deadlineMs: 60_000, registry, log }))
  const found = async () => parseMetrics(await registry.metrics())
  const asked = async () =>
    values(await found(), 'onetrip_redis_commands_total', { cmd: 'info' })[0] ?? 0
  await expect.poll(asked).toBeGreaterThan(0)
  expect(values(await found(), 'onetrip_redis_primary')).toEqual([1])
})
