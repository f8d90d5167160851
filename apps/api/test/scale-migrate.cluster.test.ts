import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import {
  createSessionStore,
  type SessionStore,
  type SessionStoreOptions,
} from '@onetrip/session-store'
import { clusterSender, partitionedKeys } from '@onetrip/session-store/cluster'
import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import { dumpOf, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import { apiProcessForThisTest, failedStart } from './api-process.ts'
import { ask } from './client.ts'
import { secret } from './support.ts'

const program = fileURLToPath(new URL('../src/migration/scale-migrate.ts', import.meta.url))

const source = redisOfThisFile()
const cluster = clusterOfThisFile({ config: { appendfsync: 'always' } })
const nodes = () => cluster.nodes.map(({ address }) => address).join(',')
const targetUrl = () => `redis+cluster://${nodes()}`
const fromTo = () => ['--from', `unix://${source.socket}`, '--to', targetUrl()]

function start(args: readonly string[], settings: Record<string, string> = {}) {
  const child = spawn(process.execPath, [program, ...args], {
    env: { ...process.env, STARTUP_DEADLINE_MS: '60000', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { child, ended: ended.then(([stdout, stderr, [code]]) => ({ code, stdout, stderr })) }
}

const run = (...args: string[]) => start(args).ended

/** What the command must return if it cannot do its work for this reason. */
const failed = (reason: string) => ({ code: 1, stderr: expect.stringContaining(reason) })

const tokens = { secrets: [secret] }

async function openStore(options: Partial<SessionStoreOptions>): Promise<SessionStore> {
  const store = createSessionStore({ tokens, janitor: 'elsewhere', deadlineMs: 20_000, ...options })
  onTestFinished(() => store.close())
  await store.ready()
  return store
}

/** Store on the source, as before the migration. */
const sourceStore = () => openStore({ url: `unix://${source.socket}` })

/** Store on the cluster, as after the migration. */
const targetStore = () =>
  openStore({
    sender: clusterSender({ nodes: nodes().split(','), deadlineMs: 20_000 }),
    keys: partitionedKeys(),
  })

const logins = (store: SessionStore, count: number) =>
  Promise.all(Array.from({ length: count }, (_, index) => store.login(`user ${index}`)))

test('moves all data to a cluster under load, although the command is killed twice', {
  timeout: 180_000,
}, async () => {
  const before = await sourceStore()
  const sessions = (await logins(before, 600)).map(({ token }) => token)
  const items = ['tea', 'book', 'lamp']
  const views = new Map(items.map((item) => [item, 0]))
  const seen = (item: string) => views.set(item, (views.get(item) ?? 0) + 1)
  for (const [index, token] of sessions.entries()) {
    const item = items[index % 3] ?? ''
    await before.recordView(token, item)
    seen(item)
  }
  await before.patch(sessions[0] ?? '', { cart: ['tea'] })

  const settings = { REDIS_URL: `unix://${source.socket}`, REDIS_MIGRATE_TO: targetUrl() }
  const urls = await Promise.all(
    ['source', 'target'].map(
      async (home) => (await apiProcessForThisTest({ ...settings, REDIS_MIGRATE_HOME: home })).url,
    ),
  )
  const post = async (api: number, path: string, token: string, body?: object) =>
    (await ask(`${urls[api]}${path}`, { method: 'POST', token, ...(body && { body }) })).status

  const ended = new Set<string>()
  let serving = true
  /** Sends views of all sessions in turn; every 50th session logs out. No request may fail. */
  async function client(first: number): Promise<void> {
    for (let at = first; serving; at += 4) {
      const token = sessions[at % sessions.length] ?? ''
      if (ended.has(token)) continue
      if (at % 50 === 1) {
        ended.add(token)
        expect(await post(at % 3 === 0 ? 0 : 1, '/logout', token)).toBe(204)
        continue
      }
      const item = items[at % 3] ?? ''
      expect(await post(Math.floor(at / 4) % 2, '/views', token, { item })).toBe(200)
      seen(item)
      await nextTurn()
    }
  }
  const clients = Promise.all([0, 1, 2, 3].map(client))
  clients.catch(() => {})

  const left = () => source.redis.hlen('login:')
  for (const share of [0.7, 0.4]) {
    const { child, ended } = start([...fromTo(), '--rate', '150', '--batch-size', '5'])
    await expect.poll(left, { interval: 5 }).toBeLessThan(600 * share)
    child.kill('SIGKILL')
    expect(await ended).toMatchObject({ code: null })
  }
  const done = { code: 0, stdout: expect.stringContaining('The source has no more sessions') }
  expect(await run(...fromTo())).toMatchObject(done)
  serving = false
  await clients
  expect(await run(...fromTo(), '--finish')).toMatchObject({ code: 0 })

  expect(ended.size).toBeGreaterThan(0)
  const after = await targetStore()
  for (const [index, token] of sessions.entries()) {
    const check = after.checkToken(token, { data: true })
    if (ended.has(token)) {
      await expect(check).rejects.toMatchObject({ code: 'ONETRIP_UNKNOWN_SESSION' })
    } else expect(await check).toMatchObject({ user: `user ${index}` })
    if (index === 0) expect(await check).toMatchObject({ data: { fields: { cart: ['tea'] } } })
  }
  const counts = (await after.popularItems()).map(({ item, views }) => [item, views] as const)
  expect(new Map(counts)).toEqual(views)
  expect(await run(...fromTo())).toMatchObject(failed('this migration is finished'))
})

test('a dry run shows what would be moved, and writes nothing', async () => {
  const before = await sourceStore()
  const [session] = await logins(before, 3)
  await before.recordView(session?.token ?? '', 'tea')
  const redises = [source.redis, ...cluster.nodes.map(({ admin }) => admin)]
  const all = await Promise.all(redises.map(dumpOf))
  const { code, stdout } = await run(...fromTo(), '--dry-run')
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringContaining('3 sessions to move'),
  })
  expect(await Promise.all(redises.map(dumpOf))).toEqual(all)
})

test('moves to a single Redis with partitioned keys', async () => {
  const [session] = await logins(await sourceStore(), 1)
  const url = `unix://${source.socket}?db=1`
  const moved = await run('--from', `unix://${source.socket}`, '--to', url, '--offline')
  expect(moved).toMatchObject({ code: 0, stderr: '' })
  const after = await openStore({ url, keys: partitionedKeys(64) })
  expect(await after.checkToken(session?.token ?? '')).toMatchObject({ user: 'user 0' })
})

test('the command and the API refuse another number of partitions than the data has', async () => {
  await targetStore()
  const reason = 'this process is set to 16 partitions, but the first start recorded 64'
  const dryRun = await run(...fromTo(), '--partitions', '16', '--dry-run')
  expect(dryRun).toMatchObject(failed(reason))
  const settings = { REDIS_URL: targetUrl(), REDIS_PARTITIONS: '16', WORKERS: '2' }
  expect(await failedStart(settings)).toMatchObject(failed(reason))
})

test('SIGTERM stops the command after the step in progress', async () => {
  await logins(await sourceStore(), 100)
  const { child, ended } = start([...fromTo(), '--offline', '--rate', '10', '--batch-size', '1'])
  await expect.poll(() => source.redis.hlen('login:')).toBeLessThan(100)
  child.kill('SIGTERM')
  expect(await ended).toMatchObject(failed('Stopped.'))
  expect(await source.redis.hlen('login::moving')).toBe(0)
})

const nowhere = 'unix:///nowhere/redis.sock'

test.each<[string, () => string[], string]>([
  ['no target', () => ['--from', nowhere], '--to'],
  ['a malformed target', () => ['--to', 'redis+cluster://a@', '--from', nowhere], 'MIGRATE_TO'],
  ['a source that is down', () => ['--from', nowhere, '--to', targetUrl()], 'the source of the'],
  [
    'a target that is down',
    () => ['--from', `unix://${source.socket}`, '--to', nowhere],
    'the target of the',
  ],
  ['a rate of 0', () => [...fromTo(), '--rate', '0'], '--rate'],
  ['two kinds of run', () => [...fromTo(), '--dry-run', '--finish'], 'cannot be used with option'],
])('rejects %s with a clear message', async (_, args, reason) => {
  const ended = await start(args(), { STARTUP_DEADLINE_MS: '500' }).ended
  expect(ended).toMatchObject({ ...failed(reason), stdout: '' })
  expect(ended.stderr).not.toContain('    at ')
})

test('starts only after an API has started with the target as home, and finishes an empty source', async () => {
  await logins(await sourceStore(), 2)
  expect(await run(...fromTo())).toMatchObject(failed('REDIS_MIGRATE_HOME=target'))
  // --from overrides REDIS_URL of an API that uses only the target.
  const finish = start([...fromTo(), '--finish'], { REDIS_URL: targetUrl() })
  expect(await finish.ended).toMatchObject(failed('still holds 2 sessions'))
  expect(await source.redis.hlen('login:')).toBe(2)
})

test('if a target node is killed, the command reports it, and the next run continues', async () => {
  const before = await sourceStore()
  const sessions = await logins(before, 300)
  const slow = start([...fromTo(), '--offline', '--rate', '100', '--batch-size', '5'])
  await expect.poll(() => source.redis.hlen('login:')).toBeLessThan(250)
  const [node] = cluster.nodes
  node?.program.signal('SIGKILL')
  expect(await slow.ended).toMatchObject(failed('No session or view was lost.'))
  await node?.restart()
  await expect
    .poll(async () => (await run(...fromTo(), '--offline')).stdout)
    .toContain('The source has no more sessions')
  const after = await targetStore()
  const users = await Promise.all(sessions.map(({ token }) => after.checkToken(token)))
  expect(users.map(({ user }) => user)).toEqual(sessions.map((_, index) => `user ${index}`))
})

test('shows its progress', async () => {
  await logins(await sourceStore(), 100)
  const { code, stderr } = await run(...fromTo(), '--offline', '--rate', '40', '--batch-size', '5')
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: expect.stringMatching(/^\d+ sessions moved \(\d+\/s\)$/m),
  })
})
