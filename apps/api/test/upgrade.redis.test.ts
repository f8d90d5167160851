import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SessionStore } from '@onetrip/session-store'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { apiProcessForThisTest } from './api-process.ts'
import { ask, logIn } from './client.ts'
import { secret } from './support.ts'

// An API from before 0.1.0 and this one share a Redis, as during a rolling deployment.

/** The oldest commit whose data and tokens work with 0.1.0, as CHANGELOG.md says. */
const BEFORE = '3521c49'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const server = redisOfThisFile()
const git = (...args: string[]) => execFileSync('git', args, { cwd: root, stdio: 'pipe' })

const hasHistory = (() => {
  try {
    git('cat-file', '-e', `${BEFORE}^{commit}`)
    return true
  } catch (error) {
    if (process.env.CI) throw error // its workflow fetches the whole history
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

/** The older API and this one, on the same Redis. */
async function bothApis() {
  const settings = { REDIS_URL: `unix://${server.socket}`, JANITOR_INTERVAL_SECONDS: '0' }
  const [old, fresh] = await Promise.all([
    apiProcessForThisTest(settings, join(before, 'apps/api/src/server.ts')),
    apiProcessForThisTest(settings),
  ])
  return { old: old.url, fresh: fresh.url }
}

const get = (url: string, path: string, token: string) => ask(`${url}${path}`, { token })
const view = (url: string, token: string) => ask(`${url}/views`, { token, body: { item: 'book' } })
const logOut = (url: string, token: string) => ask(`${url}/logout`, { method: 'POST', token })

test.runIf(hasHistory)('sessions, counts and logouts are valid in both versions', async () => {
  const { old, fresh } = await bothApis()
  const tokens = [await logIn(old), await logIn(fresh)]
  let views = 0
  for (const token of tokens) {
    for (const url of [old, fresh, old, fresh]) {
      expect(await view(url, token)).toMatchObject({ status: 200, user: 'ada', views: ++views })
      expect(await get(url, '/me/views', token)).toMatchObject({ items: [{ item: 'book' }] })
    }
  }
  for (const url of [old, fresh]) {
    expect((await get(url, '/me/sessions', tokens[0] ?? '')).sessions).toHaveLength(2)
  }
  const [first = '', second = ''] = tokens
  await logOut(fresh, first)
  expect(await view(old, first)).toMatchObject({ status: 401 })
  await logOut(old, second)
  expect(await view(fresh, second)).toMatchObject({ status: 401 })
  const left = (await server.redis.keys('*')).filter((key) => !key.startsWith('limit:')).sort()
  // The previous version does not delete data, and so not the label of a login without a password.
  expect(left).toEqual([`data:${second.split('.')[0]}`, 'viewed:'])

  const token = await logIn(old)
  const patch = { method: 'PATCH', token, body: { cart: ['book'] } }
  expect(await ask(`${fresh}/me/data`, patch)).toMatchObject({ status: 200 })
  await logOut(old, token)
  expect(await server.redis.keys('data:*')).toHaveLength(2)
  const store = new SessionStore({
    redis: `unix://${server.socket}`,
    tokens: { secrets: [secret], clock: () => Date.now() + 3_600_000 },
    janitor: 'elsewhere',
  })
  onTestFinished(() => store.close())
  await store.ready()
  const anyClock = { maxClockSkewSeconds: Number.POSITIVE_INFINITY }
  await store.janitor({ sweepEverySeconds: 0, sweepKeys: true, ...anyClock }).runOnce()
  expect(await server.redis.keys('data:*')).toEqual([])
})
