import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { redisForThisTest, redisOfThisFile } from '../../../.vitest/redis.ts'
import { parseMetrics } from '../../../load/src/measure/api-metrics.ts'
import { takesConnections } from '../../../load/src/stack/ports.ts'
import type { Program } from '../../../load/src/stack/program.ts'
import { isAlive } from '../../../load/src/stack/record.ts'
import { startApiProcess } from './api-process.ts'

const redis = redisOfThisFile()

const WORKERS = 2
interface Cluster {
  primary: Program
  url: string
  /** The processes that listen, or did, in the order in which they began to. */
  workers: number[]
}

async function clusterForThisTest(environment: Record<string, string> = {}): Promise<Cluster> {
  const workers: number[] = []
  const allListen = Promise.withResolvers<void>()
  let url = ''
  const settings = { WORKERS: String(WORKERS), REDIS_URL: `unix://${redis.socket}` }
  const primary = await startApiProcess(
    { ...settings, ...environment },
    {
      ready: () => allListen.promise,
      onLine(line) {
        url ||= /listening at (http:[^"]+)/.exec(line)?.[1] ?? ''
        const pid = /"workerPid":(\d+)/.exec(line)?.[1]
        if (pid !== undefined) workers.push(Number(pid))
        // The address is told by a worker itself, and may come after what the primary says of all.
        if (workers.length >= WORKERS && url !== '') allListen.resolve()
      },
    },
  )
  onTestFinished(async () => {
    for (const pid of workers.filter(isAlive)) process.kill(pid, 'SIGCONT')
    await primary.stop()
    expect(workers.filter(isAlive)).toEqual([])
  })
  return { primary, url, workers }
}

/** One connection that stays open: its requests are all answered by the same process. */
function connection(url: string): (path: string) => Promise<string> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  return async (path) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    request(`${url}${path}`, { agent }, (answer) => text(answer).then(resolve, reject))
      .on('error', reject)
      .end()
    return await promise
  }
}

/** A request that a worker has begun to read. */
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

const OK = '{"status":"ok"}'

/** A connection to each of the workers: they get them in turns. */
async function connections(url: string) {
  const all = Array.from({ length: WORKERS }, () => connection(url))
  for (const get of all) expect(await get('/healthz')).toBe(OK)
  return all
}

async function metric(get: (path: string) => Promise<string>, name: string, route?: string) {
  const found = parseMetrics(await get('/metrics')).filter(
    (line) => line.name === name && (route === undefined || line.labels.route === route),
  )
  return found.reduce((sum, { value }) => sum + value, 0)
}

test('all processes answer on the one port, and any tells what all of them counted', async () => {
  const { primary, url, workers } = await clusterForThisTest()
  const [first, second] = await connections(url)
  if (!first || !second) throw new Error('no connections')
  const [stopped = 0] = workers
  const countedBy = (get: typeof first) =>
    metric(get, 'http_request_duration_seconds_count', '/healthz')
  await expect.poll(() => countedBy(first)).toBe(WORKERS) // so all have been asked

  process.kill(stopped, 'SIGSTOP')
  const answered: string[] = []
  const answers = Object.entries({ first, second }).map(async ([name, get]) => {
    expect(await get('/healthz')).toBe(OK)
    answered.push(name)
  })
  await Promise.any(answers)
  const running = answered[0] === 'first' ? first : second
  // The stopped one stands with what it said last; so does one that takes long to answer.
  await expect.poll(() => countedBy(running)).toBe(2 * 1 + 1)
  expect(answered).toHaveLength(1)
  process.kill(stopped, 'SIGCONT')
  await Promise.all(answers)
  await expect.poll(() => countedBy(first)).toBe(4)
  expect(await metric(second, 'onetrip_workers')).toBe(WORKERS)
  expect(await metric(second, 'onetrip_info')).toBe(1)

  // Ctrl-C goes to all processes of a terminal, and the primary tells its workers, too.
  const login = await halfALogin(url)
  for (const pid of workers) process.kill(pid, 'SIGINT')
  primary.signal('SIGINT')
  const port = Number(new URL(url).port)
  await expect.poll(() => takesConnections('127.0.0.1', port)).toBe(false)
  expect(await login.finish()).toContain('"user":"ada"')
  expect(await primary.exited).toEqual({ code: 0, signal: null })
  expect(workers.filter(isAlive)).toEqual([])
})

test('SIGTERM under load: what was sent before it on a kept connection is answered', async () => {
  const { primary, url } = await clusterForThisTest()
  let told = false
  const answered: number[] = []
  const lost: string[] = []
  const client = async (get: (path: string) => Promise<string>, number: number) => {
    for (;;) {
      const sentBefore = !told
      try {
        expect(await get('/items/popular')).toContain('items')
        answered[number] = (answered[number] ?? 0) + 1
      } catch (error) {
        if (sentBefore) lost.push(String(error))
        if (told) return // by now nobody listens
      }
    }
  }
  const clients = Array.from({ length: 8 }, (_, number) => client(connection(url), number))
  const most = () => answered.filter((count) => count > 2).length
  await expect.poll(most).toBe(clients.length)
  told = true
  primary.signal('SIGTERM')
  await Promise.all(clients)
  expect(lost).toEqual([])
  expect(await primary.exited).toEqual({ code: 0, signal: null })
})

test('a worker that is killed is replaced, while the others go on; its counts remain', async () => {
  const own = await redisForThisTest()
  const { primary, url, workers } = await clusterForThisTest({
    REDIS_URL: `unix://${own.socket}`,
    STARTUP_DEADLINE_MS: '3000',
  })
  for (const get of await connections(url)) await get('/items/popular')
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
  for (const again of await connections(url)) expect(await again('/readyz')).toContain('ready')
  const after = connection(url)
  expect(await metric(after, name, '/items/popular')).toBe(WORKERS)
  expect(await metric(after, 'process_cpu_seconds_total')).toBeGreaterThan(cpu)
  expect(await metric(after, 'onetrip_worker_restarts_total')).toBe(1)

  // A replacement that cannot start is tried again.
  own.program.signal('SIGKILL')
  process.kill(other, 'SIGKILL')
  await expect
    .poll(() => primary.lastLines.join('\n'))
    .toContain('"reason":"not sent to Redis: no connection after 3 s')
  expect(await connection(url)('/healthz')).toBe(OK)
  await own.restart()
  await expect.poll(() => workers.length).toBe(4)

  primary.signal('SIGTERM')
  expect(await primary.exited).toEqual({ code: 0, signal: null })
  expect(workers.filter(isAlive)).toEqual([])
})

test('a worker that does not end in time is killed, which counts as a failure', async () => {
  const { primary, workers } = await clusterForThisTest({ SHUTDOWN_GRACE_MS: '100' })
  process.kill(workers[0] ?? 0, 'SIGSTOP')
  primary.signal('SIGTERM')
  expect(await primary.exited).toEqual({ code: 1, signal: null })
  expect(primary.lastLines.join('\n')).toContain('did not end in time')
})

test('no worker outlives a primary that was killed', async () => {
  const { primary, workers } = await clusterForThisTest()
  primary.signal('SIGKILL')
  await primary.exited // their output is closed, too
  await expect.poll(() => workers.filter(isAlive)).toEqual([])
})

test('no Redis at the start: one message, exit code 1', async () => {
  const start = clusterForThisTest({
    REDIS_URL: 'unix:///nowhere/redis.sock',
    STARTUP_DEADLINE_MS: '1000',
  })
  const error: Error = await start.then(
    () => new Error('it started'),
    (reason) => reason,
  )
  expect(error.message).toContain('(exit code 1)')
  expect(error.message.match(/cannot start/g)).toHaveLength(1)
  expect(error.message).toContain('no connection after 1 s (connect ENOENT')
})
