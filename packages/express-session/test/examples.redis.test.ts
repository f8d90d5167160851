import { execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { programsIn, startExample, textArguments } from '../../session-store/test/example.ts'
import { SECRET, sessionServer } from './fixture.ts'

const server = sessionServer()
const root = fileURLToPath(new URL('../../..', import.meta.url))
const guide = programsIn('docs/migrating.md')

test.each(['express.ts', 'fastify.ts'])('%s keeps the data of a session', async (file) => {
  const path = fileURLToPath(new URL(`../examples/${file}`, import.meta.url))
  const { send, stop } = await startExample(file, server.socket, [path])
  expect((await send('GET', '/theme')).body).toEqual({ theme: null })
  expect((await send('POST', '/theme/dark')).body).toEqual({ theme: 'dark' })
  expect((await send('GET', '/theme')).body).toEqual({ theme: 'dark' })
  await stop()
})

/** A signed value, as express-session and @fastify/session have it in their cookies. */
const signed = (id: string) =>
  `${id}.${createHmac('sha256', SECRET).update(id).digest('base64').replace(/=+$/, '')}`

test.each([
  [0, 'connect.sid', encodeURIComponent(`s:${signed('one')}`)],
  [1, 'sessionId', encodeURIComponent(signed('one'))],
])(
  'docs/migrating.md, program %i: a session of connect-redis becomes one of a token',
  async (index, name, old) => {
    const data = { cookie: { path: '/' }, user: 'ada', cart: ['book'] }
    await server.redis.set('sess:one', JSON.stringify(data), 'EX', 600)
    const program = textArguments(guide[index] ?? '')
    const { send, cookies, stop } = await startExample(`program ${index}`, server.socket, program)
    const me = () => send('GET', '/me')
    expect((await me()).status).toBe(401)
    cookies.set(name, old)
    const mine = { user: 'ada', data: { fields: { cart: ['book'] } } }
    expect((await me()).body).toMatchObject(mine)
    cookies.delete(name)
    expect((await me()).body).toMatchObject(mine)
    cookies.clear()
    cookies.set(name, old)
    expect((await me()).status).toBe(401) // the old session has ended
    expect(await server.redis.exists('sess:one')).toBe(0)
    await stop()
  },
)

test('the programs of the documents compile', () => {
  const folder = mkdtempSync(join(root, '.onetrip/programs-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const programs = [...programsIn('packages/express-session/README.md'), ...guide]
  expect(programs).toHaveLength(3)
  for (const [index, text] of programs.entries()) writeFileSync(join(folder, `${index}.mts`), text)
  const config = { extends: '../../tsconfig.json', include: ['*.mts'] }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  execFileSync(process.execPath, [tsc, '-p', folder], { stdio: 'inherit' })
})
