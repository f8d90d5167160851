import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { freePorts } from '@onetrip/stack/ports.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import { apiProcessForThisTest, failedStart } from './api-process.ts'

const redis = redisOfThisFile()

const settings = async (REUSE_PORT: boolean) => ({
  REDIS_URL: `unix://${redis.socket}`,
  PORT: String((await freePorts(1))[0]),
  REUSE_PORT: String(REUSE_PORT),
})

/** A keep-alive connection: one process answers all its requests. Resolves with a name of that process. */
function connection(url: string): () => Promise<string> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  return async () => {
    const [answer] = await once(request(`${url}/nowhere`, { agent }).end(), 'response')
    await text(answer)
    // Error responses have the id of the request: a prefix of the process, and a counter.
    return String(answer.headers['x-request-id']).replace(/-[^-]*$/, '')
  }
}

// Other platforms do not share connections between processes.
test.runIf(process.platform === 'linux')(
  'REUSE_PORT: two processes answer on one port, and one goes on when the other stops',
  async () => {
    const shared = await settings(true)
    const first = await apiProcessForThisTest(shared)
    const { url } = first
    const ask = connection(url)
    const stopping = await ask()
    await apiProcessForThisTest(shared)

    const answering = async () => await connection(url)()
    await expect.poll(answering).not.toBe(stopping) // the second process
    await expect.poll(answering).toBe(stopping) // the first one, on a new connection

    first.api.signal('SIGTERM')
    expect(await first.api.exited).toEqual({ code: 0, signal: null })
    const after = await Promise.all(Array.from({ length: 20 }, answering))
    expect(new Set(after).size).toBe(1)
    expect(after).not.toContain(stopping)
    expect(await ask()).toBe(after[0]) // on a new connection
  },
)

/** A module that makes Node fail as on a platform without SO_REUSEPORT. */
const notSupported = `import { Server } from 'node:net'
Server.prototype.listen = function ({ reusePort }) {
  if (reusePort) this.emit('error', Object.assign(new Error('listen ENOTSUP'), { code: 'ENOTSUP' }))
  return this
}`

test('on a platform without SO_REUSEPORT the API does not start, and names the way out', async () => {
  const { code, stderr } = await failedStart({
    ...(await settings(true)),
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(notSupported)}`,
  })
  expect(code).toBe(1)
  expect(stderr).toContain('does not support REUSE_PORT=true; give each process its own PORT')
})

test('a port in use: the error names it, and the setting that shares it', async () => {
  const own = await settings(false)
  const { url } = await apiProcessForThisTest(own)
  for (const REUSE_PORT of ['false', 'true']) {
    const { code, stderr } = await failedStart({ ...own, REUSE_PORT })
    expect(code).toBe(1)
    expect(stderr).toContain(`port ${own.PORT} on 127.0.0.1 is in use`)
    expect(stderr).toContain('REUSE_PORT=true for all processes')
  }
  expect(await connection(url)()).toMatch(/^[\w-]{8}$/)
})
