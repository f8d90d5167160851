import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { repository } from '@onetrip/stack/places.ts'
import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import fc from 'fast-check'
import { Pipeline } from 'ioredis'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Model } from '../../../packages/session-store/test/model.ts'
import * as batch from '../batch.ts'
import * as naive from '../naive.ts'
import * as pipeline from '../pipeline.ts'
import * as sequential from '../sequential.ts'

const server = redisOfThisFile()

const patterns = { naive, sequential, pipeline, batch }
const names = Object.keys(patterns) as (keyof typeof patterns)[]

const biome = join(repository, 'node_modules/.bin/biome')
const fileOf = (name: string) => join(import.meta.dirname, '..', `${name}.ts`)
const textOf = (name: string) => readFileSync(fileOf(name), 'utf8')

async function openForThisTest(name: keyof typeof patterns, socket = server.socket) {
  const sessions = await patterns[name].openSessions(socket)
  onTestFinished(() => sessions.close())
  return sessions
}

describe.each(names)('%s', (name) => {
  test('matches a plain model', async () => {
    const sessions = await openForThisTest(name)
    const action = fc.record({
      kind: fc.constantFrom('login', 'view', 'view', 'view', 'view', 'logout'),
      session: fc.nat({ max: 2 }),
      item: fc.nat({ max: 40 }).map((number) => `item ${number}`),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 60 }), async (actions) => {
        await server.redis.flushall()
        const model = new Model()
        const tokens = ['no such token', 'another', '']
        for (const [now, { kind, session, item }] of actions.entries()) {
          const user = `user ${session}`
          const token = tokens[session] ?? ''
          if (kind === 'login') {
            tokens[session] = await sessions.login(user)
            model.writeSession(tokens[session], user, undefined, now)
          } else if (kind === 'view') {
            const expected = model.recordView(token, item, now)
            const ended = expected === 'ONETRIP_UNKNOWN_SESSION'
            expect(await sessions.view(token, item)).toEqual(ended ? undefined : expected)
          } else expect(await sessions.logout(token)).toBe(model.logout(token))
        }
        const bySeen = [...model.recent].sort(([, a], [, b]) => b - a)
        const users = bySeen.map(([token]) => model.login.get(token))
        expect((await sessions.recent()).sort()).toEqual(users.sort())
        const counts = await server.redis.zrange('pattern:viewed:', '0', '-1', 'WITHSCORES')
        expect(new Map(pairs(counts))).toEqual(model.views)
        expect(await server.redis.keys('pattern:viewed:?*')).toHaveLength(model.viewed.size)
      }),
      { numRuns: name === 'naive' ? 5 : 20 },
    )
  })

  test('keeps the newest 25 items of a session', async () => {
    const sessions = await openForThisTest(name)
    const token = await sessions.login('ada')
    for (let item = 0; item < 30; item++) await sessions.view(token, `item ${item}`)
    const [key = ''] = await server.redis.keys('pattern:viewed:?*')
    expect(await server.redis.zcard(key)).toBe(25)
  })

  test('concurrent calls each get their own answer or error', async () => {
    const sessions = await openForThisTest(name)
    const login = (user: string) => sessions.login(user)
    const [ada = '', ended = '', broken = ''] = await Promise.all(['ada', 'bob', 'eve'].map(login))
    await sessions.logout(ended)
    await sessions.view(broken, 'book')
    const [key = ''] = await server.redis.keys('pattern:viewed:?*')
    await server.redis.set(key, 'not a sorted set') // refused by Redis
    const odd = { toString: 1 } as unknown as string // refused before it is sent
    const views = [
      ...[ada, ended, broken].map((token) => sessions.view(token, 'book')),
      sessions.view(ada, odd),
      sessions.view(ada, 'lamp'),
    ]
    expect(await Promise.allSettled(views)).toMatchObject([
      { value: { user: 'ada' } },
      { value: undefined },
      { status: 'rejected' },
      { status: 'rejected' },
      { value: { user: 'ada', views: 1 } },
    ])
  })

  test('a killed Redis: calls fail, nothing is sent twice, and they work again', async () => {
    const own = await redisForThisTest({ config: { appendonly: 'yes', appendfsync: 'always' } })
    const sessions = await openForThisTest(name, own.socket)
    const token = await sessions.login('ada')
    const views = Array.from({ length: 200 }, () => sessions.view(token, 'book'))
    const settled = Promise.allSettled(views)
    await Promise.race(views)
    own.program.signal('SIGKILL')
    const answers = await settled
    await own.restart()
    const before = answers.filter(({ status }) => status === 'fulfilled').length
    await expect.poll(() => sessions.view(token, 'book').catch(() => undefined)).toBeDefined()
    const { views: counted = 0 } = (await sessions.view(token, 'book')) ?? {}
    expect(counted).toBeGreaterThanOrEqual(before + 2)
    expect(counted).toBeLessThanOrEqual(answers.length + 2)
  })

  test('runs as a program; without Redis it names the setting for its address', async () => {
    const own = await redisForThisTest()
    const run = async (url: string) =>
      await promisify(execFile)(process.execPath, [fileOf(name)], {
        env: { ...process.env, REDIS_URL: url },
      })
    const { stdout } = await run(own.socket)
    expect(stdout).toMatch(/^1000 views, 1 at a time +\d+ ms\n1000 views, 64 at a time +\d+ ms$/m)
    await expect(run(`${own.socket}.missing`)).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('REDIS_URL'),
    })
  })

  test('is whole on one page, and differs from the others only in how it sends', () => {
    const text = textOf(name)
    expect(text.split('\n').length - 1).toBeLessThanOrEqual(120)
    const same = text.slice(text.indexOf('// From here on, all four files are the same.'))
    expect(same).toBe(textOf('batch').slice(-same.length))
    const [, ...imports] = text.match(/^import .*/gm) ?? []
    expect(imports).toEqual(["import { Redis } from 'ioredis'"])
  })
})

test('batch: if a whole batch fails, each of its calls does, and the next batch works', async () => {
  const sessions = await openForThisTest('batch')
  const exec = vi.spyOn(Pipeline.prototype, 'exec').mockRejectedValueOnce(new Error('broken'))
  onTestFinished(() => exec.mockRestore())
  const logins = await Promise.allSettled(['ada', 'bob'].map((user) => sessions.login(user)))
  expect(logins).toMatchObject([
    { reason: { message: 'broken' } },
    { reason: { message: 'broken' } },
  ])
  expect(await sessions.login('ada')).toMatch(/\S/)
})

// To update it: npx vitest run --project redis examples/pattern -u
test('batch.js is batch.ts without types and try-out', async () => {
  const [code = ''] = textOf('batch').split('\nif (import.meta.main)')
  const format = execFile(biome, ['format', '--stdin-file-path=batch.js'])
  format.stdin?.end(stripTypeScriptTypes(code))
  const javaScript = (await Array.fromAsync(format.stdout ?? [])).join('')
  const path = join(import.meta.dirname, '../batch.js')
  await expect(javaScript).toMatchFileSnapshot(path)
  const { openSessions }: typeof batch = await import(path)
  const sessions = await openSessions(server.socket)
  onTestFinished(() => sessions.close())
  const token = await sessions.login('ada')
  expect(await sessions.view(token, 'book')).toMatchObject({ user: 'ada' })
})

const pairs = (flat: readonly string[]): [item: string, views: number][] =>
  flat.flatMap((item, index) => (index % 2 === 0 ? [[item, -Number(flat[index + 1])]] : []))
