import fc from 'fast-check'
import type { FastifyInstance } from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { lineLimit, loggerOptions, requestIds } from '../src/logging.ts'
import { appOn, collectedLog } from './support.ts'

/** The application without Redis, and its log lines. */
async function loggingApp(logRequests: boolean) {
  const { stream, lines } = collectedLog()
  const logger = { ...loggerOptions('info', false), stream }
  const app = await appOn('/nowhere', { logger, logRequests })
  onTestFinished(() => app.close())
  return { app, lines: (): Record<string, unknown>[] => lines.map((line) => JSON.parse(line)) }
}

type LoggingApp = Awaited<ReturnType<typeof loggingApp>>

const login = (app: FastifyInstance, headers: Record<string, string> = {}) =>
  app.inject({ method: 'POST', url: '/login', payload: { user: 'ada' }, headers })

test('an error is one log line with route, code and the request id of the response', async () => {
  const { app, lines } = await loggingApp(false)
  const answer = await login(app, { 'x-request-id': 'from-the-proxy/1' })
  expect(answer.statusCode).toBe(503)
  expect(answer.headers['x-request-id']).toBe('from-the-proxy/1')
  expect(lines()).toMatchObject([
    { reqId: 'from-the-proxy/1', method: 'POST', route: '/login', code: 'ONETRIP_NOT_SENT' },
  ])
})

test('lines per error code and second are limited, and the next line counts the suppressed ones', () => {
  let now = 0
  const suppressed = lineLimit(2, () => now)
  expect(Array.from({ length: 5 }, () => suppressed('A'))).toEqual([0, 0, ...Array(3)])
  expect(suppressed('B')).toBe(0)
  now = 999
  expect(suppressed('A')).toBe(undefined)
  now = 1_000
  expect([suppressed('A'), suppressed('A'), suppressed('A')]).toEqual([4, 0, undefined])
})

test('successful requests are logged only with LOG_LEVEL=debug', async () => {
  const quiet = await loggingApp(false)
  await quiet.app.inject('/openapi.json')
  await quiet.app.inject('/nowhere')
  expect(quiet.lines()).toEqual([])

  const { app, lines } = await loggingApp(true)
  const answer = await app.inject('/nowhere?token=secret')
  expect(lines()).toMatchObject([
    { method: 'GET', path: '/nowhere', status: 404, reqId: answer.headers['x-request-id'] },
  ])
  expect(lines()[0]?.milliseconds).toBeGreaterThan(0)
  expect(JSON.stringify(lines())).not.toContain('secret')
})

test('each line of a request has its id, also of a child logger, from the level of the route', async () => {
  const { app, lines } = await loggingApp(false)
  app.get('/talkative', { logLevel: 'debug' }, async ({ log }) => {
    for (const level of ['error', 'debug', 'trace'] as const) log[level]('of %s', level)
    log.child({ part: 'inner' }).info('of a part')
    return log.level
  })
  const { body } = await app.inject({ url: '/talkative', headers: { 'x-request-id': 'mine' } })
  expect(body).toBe('debug')
  expect(lines()).toMatchObject([
    { reqId: 'mine', msg: 'of error' },
    { reqId: 'mine', msg: 'of debug' },
    { reqId: 'mine', part: 'inner', msg: 'of a part' },
  ])
})

test('no log line contains a token or a cookie, even if code logs the headers', async () => {
  const { app, lines } = await loggingApp(true)
  const headers = { authorization: 'Bearer my-token', cookie: '__Host-onetrip=my-cookie' }
  await app.inject({ url: '/me', headers })
  app.log.info({ req: { headers }, headers, token: 'my-token', cookie: 'my-cookie' }, 'careless')
  const failed = Object.assign(new Error('x'), { command: { name: 'hget', args: ['my-token'] } })
  app.log.error({ err: failed }, 'careless')
  expect(lines()).toHaveLength(3)
  expect(JSON.stringify(lines())).not.toMatch(/my-token|my-cookie/)
})

const SESSION_ID = 'AZ3z4vYAc2Vzc2lvbi1vZi1hZGEtMTIz'
const SIGNATURE = 'c2lnbmF0dXJlLW9mLXRoZS1pZC1ieS10aGUtc2VydmV'

/** The path in the log line of a request for this URL. */
async function loggedPath({ app, lines }: LoggingApp, url: string): Promise<unknown> {
  const before = lines().length
  await app.inject({ url })
  expect(lines()).toHaveLength(before + 1)
  return lines().at(-1)?.path
}

test('a token is never logged, whichever of its characters are percent-encoded', async () => {
  const app = await loggingApp(true)
  const token = `${SESSION_ID}.${SIGNATURE}`
  const spelling = fc
    .array(fc.nat(2), { minLength: token.length, maxLength: token.length })
    .map((times) =>
      Array.from(token, (letter, index) => encoded(letter, times[index] ?? 0)).join(''),
    )
  await fc.assert(
    fc.asyncProperty(spelling, async (text) => {
      expect(await loggedPath(app, `/nowhere/${text}`)).toBe('/nowhere/[hidden]')
    }),
    { numRuns: 50 },
  )
})

/** Percent-encodes this letter several times. */
const encoded = (letter: string, times: number): string => {
  if (times === 0) return letter
  const hex = letter.charCodeAt(0).toString(16)
  return `%${'25'.repeat(times - 1)}${hex}`
}

test.each([
  ...[`${SESSION_ID}%00.${SIGNATURE}`, `${SESSION_ID};${SIGNATURE}`, SIGNATURE].map((spelling) => [
    `/nowhere/${spelling}/more?a=b`,
    '/nowhere/[hidden]/more',
  ]),
  [`/${SESSION_ID}/${SIGNATURE}`, `/${SESSION_ID}/[hidden]`],
  ['/me/views', '/me/views'],
  [`/me/sessions/${SESSION_ID}`, `/me/sessions/${SESSION_ID}`],
  ['/docs/static/swagger-ui-standalone-preset.js', '/docs/static/swagger-ui-standalone-preset.js'],
  ['//a//b/', '//a//b/'],
  ['/a%20b/c', '/[hidden]/c'],
])('%s is logged as %s', async (url = '', path = '') => {
  expect(await loggedPath(await loggingApp(true), url)).toBe(path)
})

test('request ids are unique, and ids from clients are validated', () => {
  const idOf = requestIds()
  const id = (given?: string) => idOf({ headers: { 'x-request-id': given } } as never)
  const ids = Array.from({ length: 1000 }, () => id())
  expect(new Set(ids).size).toBe(1000)
  expect(requestIds()({ headers: {} } as never)).not.toBe(ids[0]) // another process
  for (const good of ['a', '0b1c-77', 'x'.repeat(64)]) expect(id(good)).toBe(good)
  for (const bad of ['', 'x'.repeat(65), 'a b', 'a,b', 'a"b', 'ä', '\u001b[31m']) {
    expect(id(bad)).toMatch(/^[\w-]{8}-[0-9a-z]+$/)
  }
})
