import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { isAlive } from '@onetrip/stack/processes.ts'
import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import {
  clusterForThisTest,
  connection,
  connections,
  hasProc,
  metric,
  OK,
  WORKERS,
} from './cluster.ts'

const redis = redisOfThisFile()

/** Sends a request on a new connection. Rejects if the connection is lost before the response is complete. */
async function connectionPerRequest(url: string): Promise<string> {
  const sent = request(`${url}/healthz`, { agent: false }).end()
  const [answer] = await once(sent, 'response')
  return await text(answer)
}

/** Number of open sockets of a process; 0 without /proc. */
function openSockets(pid: number): number {
  if (!hasProc) return 0
  const directory = `/proc/${pid}/fd`
  const targets = readdirSync(directory).map((name) => {
    try {
      return readlinkSync(`${directory}/${name}`)
    } catch {
      return '' // closed in between
    }
  })
  return targets.filter((target) => target.startsWith('socket:')).length
}

test('a killed worker is replaced while the others serve, and its counters remain', async () => {
  const own = await redisForThisTest()
  const cluster = await clusterForThisTest({
    REDIS_URL: `unix://${own.socket}`,
    STARTUP_DEADLINE_MS: '1500',
  })
  const { primary, url, workers } = cluster
  for (const get of await connections(cluster)) await get('/items/popular')
  const get = connection(url)
  const name = 'http_request_duration_seconds_count'
  const viewed = () => metric(get, name, '/items/popular')
  await expect.poll(viewed).toBe(WORKERS)
  const cpu = await metric(get, 'process_cpu_seconds_total')

  const [killed = 0, other = 0] = workers
  process.kill(killed, 'SIGKILL')
  await expect.poll(() => workers.length).toBe(3)
  expect(isAlive(killed)).toBe(false)
  expect(isAlive(other)).toBe(true)
  for (const again of await connections(cluster)) expect(await again('/readyz')).toContain('ready')
  const after = connection(url)
  expect(await metric(after, name, '/items/popular')).toBe(WORKERS)
  expect(await metric(after, 'process_cpu_seconds_total')).toBeGreaterThan(cpu)
  expect(await metric(after, 'onetrip_worker_restarts_total')).toBe(1)

  // A replacement that cannot start is retried.
  own.program.signal('SIGKILL')
  process.kill(other, 'SIGKILL')
  await expect
    .poll(() => primary.lastLines.join('\n'))
    .toContain('"reason":"not sent to Redis: no connection after 1.5 s')
  expect(await connection(url)('/healthz')).toBe(OK)
  await own.restart()
  await expect.poll(() => workers.length).toBe(4)

  primary.signal('SIGTERM')
  expect(await primary.exited).toEqual({ code: 0, signal: null })
  expect(workers.filter(isAlive)).toEqual([])
})

test('after workers are killed, no client waits and no socket is left in the primary', async () => {
  const { primary, url, workers } = await clusterForThisTest({
    REDIS_URL: `unix://${redis.socket}`,
  })
  const socketsBefore = openSockets(primary.pid)
  const KILLS = 2
  let done = false
  let waiting = 0
  let answers = 0
  const errors: string[] = []
  const client = async () => {
    while (!done) {
      waiting += 1
      try {
        expect(await connectionPerRequest(url)).toBe(OK)
        answers += 1
      } catch (error) {
        errors.push((error as NodeJS.ErrnoException).code ?? String(error))
      }
      waiting -= 1
    }
  }
  const clients = Array.from({ length: 8 }, client)

  for (let killed = 0; killed < KILLS; killed += 1) {
    const answersBefore = answers
    await expect.poll(() => answers).toBeGreaterThan(answersBefore + 100)
    process.kill(workers[killed] ?? 0, 'SIGKILL')
    await expect.poll(() => workers.length).toBe(WORKERS + killed + 1)
  }
  done = true
  const left = () => ({ waiting, sockets: openSockets(primary.pid) })
  await expect.poll(left).toEqual({ waiting: 0, sockets: socketsBefore })
  await Promise.all(clients)
  // Only connections accepted by the killed worker are lost; the port stays open.
  expect(errors.filter((code) => !['ECONNRESET', 'EPIPE'].includes(code))).toEqual([])
}, 120_000)

test('a worker that does not end in time is killed, which counts as a failure', async () => {
  const { primary, workers } = await clusterForThisTest({
    REDIS_URL: `unix://${redis.socket}`,
    SHUTDOWN_GRACE_MS: '100',
  })
  process.kill(workers[0] ?? 0, 'SIGSTOP')
  primary.signal('SIGTERM')
  expect(await primary.exited).toEqual({ code: 1, signal: null })
  expect(primary.lastLines.join('\n')).toContain('did not end in time')
})

test('no worker outlives a primary that was killed', async () => {
  const { primary, workers } = await clusterForThisTest({ REDIS_URL: `unix://${redis.socket}` })
  primary.signal('SIGKILL')
  await primary.exited // resolves after the workers have closed their output
  await expect.poll(() => workers.filter(isAlive)).toEqual([])
})
