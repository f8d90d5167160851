import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { startProgram } from '@onetrip/stack/program.ts'
import { expect, onTestFinished, test } from 'vitest'
import { SECRET, sessionServer } from './fixture.ts'

const server = sessionServer()

const guide = readFileSync(new URL('../../../docs/migrating.md', import.meta.url), 'utf8')
const [express = '', fastify = ''] = [...guide.matchAll(/^```ts\n(.*?)^```$/gms)].map(
  ([, program = '']) => program,
)

/** A signed value, as express-session and @fastify/session have it in their cookies. */
const signed = (id: string) =>
  `${id}.${createHmac('sha256', SECRET).update(id).digest('base64').replace(/=+$/, '')}`

test.each([
  ['Express', express, `connect.sid=${encodeURIComponent(`s:${signed('one')}`)}`],
  ['Fastify', fastify, `sessionId=${encodeURIComponent(signed('one'))}`],
])(
  'docs/migrating.md, %s: a session of connect-redis becomes one of a token',
  async (name, text, cookie) => {
    const data = { cookie: { path: '/' }, user: 'ada', cart: ['book'] }
    await server.redis.set('sess:one', JSON.stringify(data), 'EX', 600)
    const program = await startProgram({
      name,
      command: process.execPath,
      args: ['--input-type=module-typescript', '--eval', text],
      cwd: fileURLToPath(new URL('..', import.meta.url)), // from which it imports
      env: {
        PATH: process.env.PATH,
        NODE_ENV: 'development',
        PORT: '0',
        REDIS_URL: `unix://${server.socket}`,
        SESSION_SECRET: SECRET,
      },
      ready: /127\.0\.0\.1|port: \d+/,
      readyTimeoutMs: 100_000,
    })
    onTestFinished(() => program.stop().then(() => undefined))
    const port = /(?:127\.0\.0\.1:|port: )(\d+)/.exec(program.lastLines.join('\n'))?.[1]
    const me = async (cookie: string) =>
      await fetch(`http://127.0.0.1:${port}/me`, { headers: { cookie } })
    expect((await me('')).status).toBe(401)
    const first = await me(cookie)
    const mine = { user: 'ada', data: { fields: { cart: ['book'] } } }
    expect(await first.json()).toMatchObject(mine)
    const [token = ''] = first.headers.getSetCookie().filter((value) => value.includes('onetrip'))
    expect(await (await me(token.split(';')[0] ?? '')).json()).toMatchObject(mine)
    expect((await me(cookie)).status).toBe(401) // the old session has ended
    expect(await server.redis.exists('sess:one')).toBe(0)
    expect(await program.stop()).toEqual({ code: 0, signal: null })
  },
)
