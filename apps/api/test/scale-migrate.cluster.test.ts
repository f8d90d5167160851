import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { createSessionStore, type SessionStore } from '@onetrip/session-store'
import { clusterSender, partitionedKeys } from '@onetrip/session-store/cluster'
import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import { dumpOf, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import { apiProcessForThisTest, failedStart } from './api-process.ts'
import { secret } from './support.ts'

const program = fileURLToPath(new URL('../src/migration/scale-migrate.ts', import.meta.url))

const source = redisOfThisFile()
const cluster = clusterOfThisFile({ config: { appendfsync: 'always' } })
const nodes = () => cluster.nodes.map(({ address }) => address).join(',')
const targetUrl = () => `redis+cluster://${nodes()}`
const fromTo = () => ['--from', `unix://${source.socket}`, '--to', targetUrl()]

let startupMs = '60000'

function start(args: readonly string[], settings: Record<string, string> = {}) {
  const env = { ...process.env, STARTUP_DEADLINE_MS: startupMs, ...settings }
  const child = spawn(process.execPath, [program, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { child, ended: ended.then(([stdout, stderr, [code]]) => ({ code, stdout, stderr })) }
}

const run = (...args: string[]) => start(args).ended

const tokens = { secrets: [secret] }

/** Store on the source, as before the migration. */
async function sourceStore(): Promise<SessionStore> {
  const url = `unix://${source.socket}`
  const store = createSessionStore({ url, tokens, janitor: 'elsewhere', deadlineMs: 20_000 })
  onTestFinished(() => store.close())
  await store.ready()
  return store
}

/** Store on the cluster, as after the migration. */
async function targetStore(): Promise<SessionStore> {
  const store = createSessionStore({
    sender: clusterSender({ nodes: nodes().split(','), deadlineMs: 20_000 }),
    keys: partitionedKeys(),
    tokens,
    janitor: 'elsewhere',
    deadlineMs: 20_000,
  })
  onTestFinished(() => store.close())
  await store.ready()
  return store
}

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
  const post = (api: number, path: string, token: string, body?: object) =>
    fetch(`${urls[api]}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })

  const ended = new Set<string>()
  let serving = true
  /** Sends views of all sessions in turn; every 50th session logs out. No request may fail. */
  async function client(first: number): Promise<void> {
    for (let at = first; serving; at += 4) {
      const token = sessions[at % sessions.length] ?? ''
      if (ended.has(token)) continue
      if (at % 50 === 1) {
        ended.add(token)
        const { status } = await post(at % 3 === 0 ? 0 : 1, '/logout', token)
        expect(status).toBeLessThan(300)
        continue
      }
      const item = items[at % 3] ?? ''
      const response = await post(Math.floor(at / 4) % 2, '/views', token, { item })
      expect({ token, status: response.status }).toEqual({ token, status: 200 })
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
  expect(await run(...fromTo())).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^Moved .* sessions and .* views of 3 items in .* s\.\nThe source has no more sessions/,
    ),
  })
  serving = false
  await clients
  expect(await run(...fromTo(), '--finish')).toMatchObject({
    code: 0,
    stdout: 'The migration is finished. You can stop the source.\n',
  })

  expect(ended.size).toBeGreaterThan(0)
  const after = await targetStore()
  for (const [index, token] of sessions.entries()) {
    const check = after.checkToken(token, { data: true })
    if (ended.has(token))
      await expect(check).rejects.toThrow('the session does not exist or has ended')
    else expect(await check).toMatchObject({ user: `user ${index}` })
    if (index === 0) expect(await check).toMatchObject({ data: { fields: { cart: ['tea'] } } })
  }
  const counts = (await after.popularItems()).map(({ item, views }) => [item, views] as const)
  expect(new Map(counts)).toEqual(views)
  expect(await run(...fromTo())).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('this migration is finished: use only the target store'),
  })
})

test('a dry run shows what would be moved, and writes nothing', async () => {
  const before = await sourceStore()
  const [session] = await logins(before, 3)
  await before.recordView(session?.token ?? '', 'tea')
  const redises = [source.redis, ...cluster.nodes.map(({ admin }) => admin)]
  const all = await Promise.all(redises.map(dumpOf))
  expect(await run(...fromTo(), '--dry-run')).toEqual({
    code: 0,
    stdout: `Dry run: nothing was written. The source has
  3 sessions to move, and 0 left by an interrupted run
  counts of 1 items
`,
    stderr: '',
  })
  expect(await Promise.all(redises.map(dumpOf))).toEqual(all)
})

test('moves to a single Redis with partitioned keys', async () => {
  const before = await sourceStore()
  const [session] = await logins(before, 1)
  expect(
    await run(
      '--from',
      `unix://${source.socket}`,
      '--to',
      `unix://${source.socket}?db=1`,
      '--offline',
    ),
  ).toMatchObject({ code: 0, stderr: '' })
  const url = `unix://${source.socket}?db=1`
  const after = createSessionStore({ url, keys: partitionedKeys(64), tokens, janitor: 'elsewhere' })
  onTestFinished(() => after.close())
  await after.ready()
  expect(await after.checkToken(session?.token ?? '')).toMatchObject({ user: 'user 0' })
})

test('the command and the API refuse another number of partitions than the data has', async () => {
  await targetStore()
  const wrong = 'this process is set to 16 partitions, but the first start recorded 64'
  expect(await run(...fromTo(), '--partitions', '16', '--dry-run')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`the target of the migration: ${wrong}`),
  })
  expect(
    await failedStart({ REDIS_URL: targetUrl(), REDIS_PARTITIONS: '16', WORKERS: '2' }),
  ).toMatchObject({ code: 1, stderr: expect.stringContaining(wrong) })
})

test('SIGTERM stops the command after the step in progress', async () => {
  await logins(await sourceStore(), 100)
  const { child, ended } = start([...fromTo(), '--offline', '--rate', '10', '--batch-size', '1'])
  await expect.poll(() => source.redis.hlen('login:')).toBeLessThan(100)
  child.kill('SIGTERM')
  expect(await ended).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Stopped. Run the same command again to continue.'),
  })
  expect(await source.redis.hlen('login::moving')).toBe(0)
})

const nowhere = 'unix:///nowhere/redis.sock'

test.each<[string, () => string[], string]>([
  ['no target', () => ['--from', nowhere], "required option '--to <url>' not specified"],
  [
    'a malformed target',
    () => ['--to', 'redis+cluster://here@', '--from', nowhere],
    'REDIS_MIGRATE_TO: it must look like redis+cluster://',
  ],
  [
    'a source that is down',
    () => ['--from', nowhere, '--to', targetUrl()],
    'the source of the migration: not sent to Redis',
  ],
  [
    'a target that is down',
    () => ['--from', `unix://${source.socket}`, '--to', nowhere],
    'the target of the migration: not sent to Redis',
  ],
  ['a rate of 0', () => [...fromTo(), '--rate', '0'], 'It must be a whole number from 1'],
  ['partitions', () => [...fromTo(), '--partitions', '0'], 'REDIS_PARTITIONS must be >= 1'],
  ['two kinds of run', () => [...fromTo(), '--dry-run', '--finish'], 'cannot be used with option'],
])('rejects %s with a clear message', async (_, args, message) => {
  startupMs = '500'
  onTestFinished(() => {
    startupMs = '60000'
  })
  const { code, stdout, stderr } = await run(...args())
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toContain(message)
  expect(stderr).not.toContain('    at ')
})

test('shows progress on a terminal', async () => {
  await logins(await sourceStore(), 100)
  const args = [...fromTo(), '--offline', '--rate', '200', '--batch-size', '5']
  const command = [process.execPath, program, ...args].map((word) => `'${word}'`).join(' ')
  const child = spawn('script', ['-qec', command, '/dev/null'])
  onTestFinished(() => void child.kill('SIGKILL'))
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')])
  const stdout = stripVTControlCharacters(output)
  const shown = [...stdout.matchAll(/\r(\d+) sessions moved/g)].map(([, moved]) => Number(moved))
  expect(code).toBe(0)
  expect(shown.length).toBeGreaterThan(1)
  expect(shown).toEqual(shown.toSorted((a, b) => a - b))
  expect(stdout).toMatch(/\rMoved 100 sessions/)
})

test('starts only after an API has started with the target as home, or with --offline', async () => {
  await logins(await sourceStore(), 1)
  expect(await run(...fromTo())).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no API has started with REDIS_MIGRATE_HOME=target yet'),
  })
  expect(await source.redis.hlen('login:')).toBe(1)
})

test('if a target node is killed, the command reports it, and the next run continues', async () => {
  const before = await sourceStore()
  const sessions = await logins(before, 300)
  const slow = start([...fromTo(), '--offline', '--rate', '100', '--batch-size', '5'])
  await expect.poll(() => source.redis.hlen('login:')).toBeLessThan(250)
  const [node] = cluster.nodes
  node?.program.signal('SIGKILL')
  expect(await slow.ended).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('No session or view was lost. Run the same command again'),
  })
  await node?.restart()
  await expect
    .poll(async () => (await run(...fromTo(), '--offline')).stdout)
    .toContain('The source has no more sessions')
  const after = await targetStore()
  const users = await Promise.all(sessions.map(({ token }) => after.checkToken(token)))
  expect(users.map(({ user }) => user)).toEqual(sessions.map((_, index) => `user ${index}`))
})

test('--finish is rejected while the source has sessions', async () => {
  await logins(await sourceStore(), 2)
  expect(await run(...fromTo(), '--finish')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('the source still holds 2 sessions: migrate them first'),
  })
})

test('--from overrides REDIS_URL of an API that uses only the target', async () => {
  await logins(await sourceStore(), 2)
  const settings = { REDIS_URL: targetUrl() }
  expect(await start([...fromTo(), '--finish'], settings).ended).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('the source still holds 2 sessions: migrate them first'),
  })
})
