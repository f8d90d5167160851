import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { redisForThisTest } from '../../../.vitest/redis.ts'
import { startProgram } from '../../../load/src/stack/program.ts'
import { secret } from './support.ts'

// vitest compiles types in its own way: these run the real entry with plain Node.
const server = fileURLToPath(new URL('../src/server.ts', import.meta.url))

const environment = (more: Record<string, string>) => ({
  ...process.env,
  NODE_ENV: 'development',
  PORT: '0',
  SESSION_SECRETS: secret,
  ...more,
})

test('SIGTERM: what is in flight is answered, then it exits with 0', async () => {
  const redis = await redisForThisTest()
  const api = await startProgram({
    name: 'API',
    command: process.execPath,
    args: [server],
    // Without the janitor, whose round trips are counted, too.
    env: environment({ REDIS_URL: `unix://${redis.socket}`, JANITOR_INTERVAL_SECONDS: '0' }),
    ready: /listening at http/,
  })
  onTestFinished(async () => void (await api.stop()))
  const url = /http:[^"]+/.exec(api.lastLines.join('\n'))?.[0]
  const answer = await fetch(`${url}/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ user: 'ada' }),
  })
  const { token } = (await answer.json()) as { token: string }
  expect(answer.status).toBe(200)
  redis.program.signal('SIGSTOP')
  const view = fetch(`${url}/views`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ item: 'book' }),
  })
  // What says that the view is on its way.
  await expect
    .poll(async () => (await fetch(`${url}/metrics`)).text())
    .toContain('onetrip_store_in_flight 1')
  api.signal('SIGTERM')
  redis.program.signal('SIGCONT')
  expect((await view).status).toBe(200)
  expect(await api.exited).toEqual({ code: 0, signal: null })
  expect(api.lastLines.join('\n')).not.toContain(token)
})

test('ends sessions beyond the maximum by itself', async () => {
  const redis = await redisForThisTest()
  const api = await startProgram({
    name: 'API',
    command: process.execPath,
    args: [server],
    env: environment({
      REDIS_URL: `unix://${redis.socket}`,
      MAX_SESSIONS: '1',
      JANITOR_INTERVAL_SECONDS: '1',
    }),
    ready: /listening at http/,
  })
  onTestFinished(async () => void (await api.stop()))
  const url = /http:[^"]+/.exec(api.lastLines.join('\n'))?.[0]
  const login = async () => {
    const answer = await fetch(`${url}/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ user: 'ada' }),
    })
    const { token } = (await answer.json()) as { token: string }
    return { authorization: `Bearer ${token}` }
  }
  const [older, newer] = [await login(), await login()]
  await expect
    .poll(async () => (await fetch(`${url}/me`, { headers: older })).status, { timeout: 10_000 })
    .toBe(401)
  expect((await fetch(`${url}/me`, { headers: newer })).status).toBe(200)
})

async function failure(more: Record<string, string>): Promise<{ code: number; stderr: string }> {
  const child = spawn(process.execPath, [server], { env: environment(more) })
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  return { code: code as number, stderr }
}

test('no Redis at the start: says so and exits after a bounded wait', async () => {
  const { code, stderr } = await failure({
    REDIS_URL: 'unix:///nowhere/redis.sock',
    STARTUP_DEADLINE_MS: '300',
  })
  expect(code).toBe(1)
  expect(stderr).toContain('no connection after 0.3 s')
  expect(stderr).toContain('ENOENT')
})

test.each([
  [{ PORT: 'x' }, 'PORT'],
  [{ SESSION_SECRETS: 'short' }, 'SESSION_SECRETS'],
  [{ NODE_ENV: 'production' }, 'NODE_ENV=production'],
])('%j is refused before anything starts', async (more, words) => {
  const { code, stderr } = await failure(more)
  expect(code).toBe(1)
  expect(stderr).toContain(words)
})
