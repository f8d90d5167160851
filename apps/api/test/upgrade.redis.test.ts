import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createSessionStore } from '@onetrip/session-store'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { apiProcessForThisTest } from './api-process.ts'
import { bearer, secret } from './support.ts'

// The previous release of the API and this one share a Redis, as during a rolling deployment.

/** The last commit before the newest section of CHANGELOG.md. */
const BEFORE = '3521c49'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const server = redisOfThisFile()
const git = (...args: string[]) => execFileSync('git', args, { cwd: root, stdio: 'pipe' })

const hasHistory = (() => {
  try {
    git('cat-file', '-e', `${BEFORE}^{commit}`)
    return true
  } catch {
    process.stderr.write(
      `SKIPPED upgrade.redis.test.ts: there is no commit ${BEFORE} in this clone\n`,
    )
    return false
  }
})()

let before = ''

beforeAll(() => {
  if (!hasHistory) return
  before = mkdtempSync(join(tmpdir(), 'onetrip-before-'))
  const archive = git('archive', BEFORE, 'apps/api', 'packages/session-store')
  execFileSync('tar', ['-x', '-C', before], { input: archive })
  // Links its own packages and the libraries of this checkout.
  mkdirSync(join(before, 'node_modules/@onetrip'), { recursive: true })
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (name === '@onetrip' || name.startsWith('.')) continue
    symlinkSync(join(root, 'node_modules', name), join(before, 'node_modules', name))
  }
  symlinkSync(
    join(before, 'packages/session-store'),
    join(before, 'node_modules/@onetrip/session-store'),
  )
})
afterAll(() => {
  if (before !== '') rmSync(before, { recursive: true, force: true })
})

async function bothApis() {
  const settings = { REDIS_URL: `unix://${server.socket}`, JANITOR_INTERVAL_SECONDS: '0' }
  const [old, fresh] = await Promise.all([
    apiProcessForThisTest(settings, join(before, 'apps/api/src/server.ts')),
    apiProcessForThisTest(settings),
  ])
  return { old: clientOf(old.url), fresh: clientOf(fresh.url) }
}

interface Answer {
  token?: string
  sessions?: unknown[]
}

const clientOf = (url: string) => {
  const call = async (path: string, token: string, init: RequestInit = {}) => {
    const type = init.body === undefined ? {} : { 'content-type': 'application/json' }
    const headers = { ...(token && bearer(token)), ...type }
    const answer = await fetch(`${url}${path}`, { ...init, headers })
    const body = (await answer.json().catch(() => ({}))) as Answer
    return { ...body, status: answer.status }
  }
  const post = (path: string, token: string, body: object) =>
    call(path, token, { method: 'POST', body: JSON.stringify(body) })
  return {
    call,
    view: (token: string) => post('/views', token, { item: 'book' }),
    login: async () => String((await post('/login', '', { user: 'ada' })).token),
    logout: (token: string) => call('/logout', token, { method: 'POST' }),
  }
}

test.runIf(hasHistory)('sessions and counts are valid in both versions', async () => {
  const { old, fresh } = await bothApis()
  const tokens = [await old.login(), await fresh.login()]
  let views = 0
  for (const token of tokens) {
    for (const api of [old, fresh, old, fresh]) {
      expect(await api.view(token)).toMatchObject({ status: 200, user: 'ada', views: ++views })
    }
    expect(await old.call('/me/views', token)).toMatchObject({ items: [{ item: 'book' }] })
    expect(await fresh.call('/me/views', token)).toMatchObject({ items: [{ item: 'book' }] })
  }
  for (const api of [old, fresh]) {
    const { sessions } = await api.call('/me/sessions', tokens[0] ?? '')
    expect(sessions).toHaveLength(2)
  }
})

test.runIf(hasHistory)('a logout in one version applies to the other', async () => {
  const { old, fresh } = await bothApis()
  for (const [one, other] of [
    [old, fresh],
    [fresh, old],
  ] as const) {
    const token = await one.login()
    await one.logout(token)
    expect(await other.view(token)).toMatchObject({ status: 401 })
  }
  const left = (await server.redis.keys('*')).filter((key) => !key.startsWith('limit:'))
  expect(left).toEqual([])
})

test.runIf(hasHistory)('data of sessions ended by the previous version is swept', async () => {
  const { old, fresh } = await bothApis()
  const token = await old.login()
  const body = JSON.stringify({ cart: ['book'] })
  expect(await fresh.call('/me/data', token, { method: 'PATCH', body })).toMatchObject({
    status: 200,
  })
  await old.logout(token)
  expect(await server.redis.keys('data:*')).toHaveLength(1) // the previous version does not delete data
  const store = createSessionStore({
    url: `unix://${server.socket}`,
    tokens: { secrets: [secret], clock: () => Date.now() + 3_600_000 },
    janitor: 'elsewhere',
  })
  onTestFinished(() => store.close())
  await store.ready()
  const anyClock = { maxClockSkewSeconds: Number.POSITIVE_INFINITY }
  await store.janitor({ sweepEverySeconds: 0, sweepKeys: true, ...anyClock }).runOnce()
  expect(await server.redis.keys('data:*')).toEqual([])
})
