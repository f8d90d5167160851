import { Writable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { lineLimit, loggerOptions, requestIds } from '../src/logging.ts'
import { appOn } from './support.ts'

type Line = Record<string, unknown>

/** The application without a Redis, and the lines that it logs. */
async function loggingApp(logRequests: boolean): Promise<{ app: FastifyInstance; lines: Line[] }> {
  const lines: Line[] = []
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)))
      done()
    },
  })
  const logger = { ...loggerOptions('info', false), stream }
  const app = await appOn('/nowhere', { logger, logRequests })
  onTestFinished(() => app.close())
  return { app, lines }
}

const login = (app: FastifyInstance, headers: Record<string, string> = {}) =>
  app.inject({ method: 'POST', url: '/login', payload: { user: 'ada' }, headers })

test('an error is one line, with the route, the code and the id that the answer has, too', async () => {
  const { app, lines } = await loggingApp(false)
  const answer = await login(app, { 'x-request-id': 'from-the-proxy/1' })
  expect(answer.statusCode).toBe(503)
  expect(answer.headers['x-request-id']).toBe('from-the-proxy/1')
  expect(lines).toMatchObject([
    { reqId: 'from-the-proxy/1', method: 'POST', route: '/login', code: 'ONETRIP_NOT_SENT' },
  ])
})

test('an outage is no flood: of each code some lines in a second, then how many were left out', () => {
  let now = 0
  const leftOut = lineLimit(2, () => now)
  expect(Array.from({ length: 5 }, () => leftOut('A'))).toEqual([0, 0, ...Array(3)])
  expect(leftOut('B')).toBe(0)
  now = 999
  expect(leftOut('A')).toBe(undefined)
  now = 1_000
  expect([leftOut('A'), leftOut('A'), leftOut('A')]).toEqual([4, 0, undefined])
})

test('answers that are no error are no line, unless asked for', async () => {
  const quiet = await loggingApp(false)
  await quiet.app.inject('/openapi.json')
  await quiet.app.inject('/nowhere')
  expect(quiet.lines).toEqual([])

  const { app, lines } = await loggingApp(true)
  const answer = await app.inject('/nowhere?token=secret')
  expect(lines).toMatchObject([
    { method: 'GET', path: '/nowhere', status: 404, reqId: answer.headers['x-request-id'] },
  ])
  expect(lines[0]?.milliseconds).toBeGreaterThan(0)
  expect(JSON.stringify(lines)).not.toContain('secret')
})

test('no token and no cookie is in a line, also when somebody logs the headers', async () => {
  const { app, lines } = await loggingApp(true)
  const headers = { authorization: 'Bearer my-token', cookie: '__Host-onetrip=my-cookie' }
  await app.inject({ url: '/me', headers })
  app.log.info({ req: { headers }, headers, token: 'my-token', cookie: 'my-cookie' }, 'careless')
  const failed = Object.assign(new Error('x'), { command: { name: 'hget', args: ['my-token'] } })
  app.log.error({ err: failed }, 'careless')
  expect(lines).toHaveLength(3)
  expect(JSON.stringify(lines)).not.toMatch(/my-token|my-cookie/)
})

test('ids of requests are different, and those that come from outside are well-formed', () => {
  const idOf = requestIds()
  const id = (given?: string) => idOf({ headers: { 'x-request-id': given } } as never)
  const ids = Array.from({ length: 1000 }, () => id())
  expect(new Set(ids).size).toBe(1000)
  expect(requestIds()({ headers: {} } as never)).not.toBe(ids[0]) // of another process
  for (const good of ['a', '0b1c-77', 'x'.repeat(64)]) expect(id(good)).toBe(good)
  for (const bad of ['', 'x'.repeat(65), 'a b', 'a,b', 'a"b', 'ä', '\u001b[31m']) {
    expect(id(bad)).toMatch(/^[\w-]{8}-[0-9a-z]+$/)
  }
})
