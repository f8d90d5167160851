import { once } from 'node:events'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { accepts, freePorts } from '@onetrip/stack/ports.ts'
import { isAlive } from '@onetrip/stack/processes.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { failedStart } from './api-process.ts'
import {
  clusterForThisTest,
  connection,
  connections,
  metric,
  OK,
  pause,
  WORKERS,
} from './cluster.ts'

const redis = redisOfThisFile()

/** Sends half a login, so that a worker has begun to read it. */
async function halfALogin(url: string): Promise<{ finish(): Promise<string> }> {
  const body = JSON.stringify({ user: 'ada' })
  const headers = {
    'content-type': 'application/json',
    'content-length': body.length,
    expect: '100-continue',
  }
  const login = request(`${url}/login`, { method: 'POST', headers })
  login.flushHeaders()
  await once(login, 'continue')
  return {
    async finish() {
      login.end(body)
      const [answer] = await once(login, 'response')
      return await text(answer)
    },
  }
}

test('all workers serve one port, and the metrics of any worker include all', async () => {
  const cluster = await clusterForThisTest({ REDIS_URL: `unix://${redis.socket}` })
  const { primary, url, workers } = cluster
  const [first, second] = await connections(cluster)
  if (!first || !second) throw new Error('no connections')
  const [stopped = 0] = workers
  const countedBy = (get: typeof first) =>
    metric(get, 'http_request_duration_seconds_count', '/healthz')
  await expect.poll(() => countedBy(first)).toBe(WORKERS) // all workers have replied

  await pause(stopped)
  const late = first('/healthz')
  expect(await second('/healthz')).toBe(OK)
  // A stopped or busy worker accepts no connections: the other workers get the new ones.
  for (const get of [connection(url), connection(url)]) expect(await get('/healthz')).toBe(OK)
  // The last metrics of the stopped worker are used.
  await expect.poll(() => countedBy(second)).toBe(WORKERS + 3)
  process.kill(stopped, 'SIGCONT')
  expect(await late).toBe(OK)
  await expect.poll(() => countedBy(first)).toBe(WORKERS + 4)
  expect(await metric(second, 'onetrip_workers')).toBe(WORKERS)
  expect(await metric(second, 'onetrip_info')).toBe(1)

  // Ctrl-C sends SIGINT to all processes of a terminal; in addition, the primary sends SIGTERM to its
  // workers.
  const login = await halfALogin(url)
  for (const pid of workers) process.kill(pid, 'SIGINT')
  primary.signal('SIGINT')
  const port = Number(new URL(url).port)
  await expect.poll(() => accepts({ host: '127.0.0.1', port })).toBe(false)
  expect(await login.finish()).toContain('"user":"ada"')
  expect(await primary.exited).toEqual({ code: 0, signal: null })
  expect(workers.filter(isAlive)).toEqual([])
})

test('SIGTERM under load: requests sent before it on keep-alive connections are answered', async () => {
  const { primary, url } = await clusterForThisTest({ REDIS_URL: `unix://${redis.socket}` })
  let signalSent = false
  const answered: number[] = []
  const lost: string[] = []
  const client = async (get: (path: string) => Promise<string>, number: number) => {
    for (;;) {
      const sentBefore = !signalSent
      try {
        expect(await get('/items/popular')).toContain('items')
        answered[number] = (answered[number] ?? 0) + 1
      } catch (error) {
        if (sentBefore) lost.push(String(error))
        if (signalSent) return // the port is closed
      }
    }
  }
  const clients = Array.from({ length: 8 }, (_, number) => client(connection(url), number))
  const most = () => answered.filter((count) => count > 2).length
  await expect.poll(most).toBe(clients.length)
  signalSent = true
  primary.signal('SIGTERM')
  await Promise.all(clients)
  expect(lost).toEqual([])
  expect(await primary.exited).toEqual({ code: 0, signal: null })
  expect(primary.lastLines.join('\n').match(/shutting down/g)).toHaveLength(1)
})

test('a second API on the same port fails with an error that names the port', async () => {
  const [port = 0] = await freePorts(1)
  const { url } = await clusterForThisTest({
    REDIS_URL: `unix://${redis.socket}`,
    PORT: String(port),
  })
  for (const workers of ['1', String(WORKERS)]) {
    const settings = { PORT: String(port), WORKERS: workers, REDIS_URL: `unix://${redis.socket}` }
    const { code, stderr } = await failedStart(settings)
    expect(code).toBe(1)
    expect(stderr.match(/cannot start/g)).toHaveLength(1)
    expect(stderr).toContain(`port ${port} on 127.0.0.1 is in use`)
  }
  expect(await connection(url)('/healthz')).toBe(OK)
})
