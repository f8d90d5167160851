import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { InjectOptions } from 'fastify'
import { expect, test } from 'vitest'
import { loggerOptions } from '../src/logging.ts'
import { appForThisTest, bearer, collectedLog, login, secret } from './support.ts'

const server = redisOfThisFile()

const logged = () => {
  const log = collectedLog()
  return { ...log, logger: { ...(loggerOptions('trace', false) as object), stream: log.stream } }
}

test('no log line and no error contains a token, a cookie or a secret', async () => {
  const redis = await redisForThisTest()
  const log = logged()
  const app = await appForThisTest(redis.socket, {
    logger: log.logger,
    logRequests: true,
    deadlineMs: 2_000,
  })
  const [kept, ended] = [await login(app), await login(app)]
  await app.inject({ method: 'POST', url: '/logout', headers: bearer(ended) })
  const forged = `${kept.slice(0, -5)}AAAAA`
  const tokens = [kept, ended, forged]
  const answers: string[] = []
  const ask = async (request: InjectOptions) => answers.push((await app.inject(request)).body)

  const askAll = async () => {
    for (const token of tokens) {
      const view = { method: 'POST', url: '/views', payload: { item: 'book' } } as const
      await ask({ ...view, headers: bearer(token) })
      await ask({ ...view, cookies: { '__Host-onetrip': token } })
      await ask({ ...view, cookies: { '__Host-onetrip': token }, headers: { origin: 'null' } })
      await ask({ ...view, headers: { cookie: `__Host-onetrip=${token};__Host-onetrip=b` } })
      for (const url of ['/me', '/me/views', '/recent', '/items/popular', '/metrics']) {
        await ask({ url, headers: bearer(token) })
      }
      // Tokens in wrong places.
      await ask({ url: `/me?token=${token}`, headers: bearer(token) })
      await ask({ url: `/items/popular?token=${token}` })
      await ask({ url: `/nowhere/%zz?token=${token}` })
      await ask({ url: `/nowhere/${token}` })
      await ask({ method: 'DELETE', url: `/me/sessions/${token}`, headers: bearer(token) })
      const headers = { ...bearer(token), 'content-type': `text/${token.slice(0, 32)}` }
      await ask({ method: 'POST', url: '/views', headers, payload: token })
      await ask({ method: 'POST', url: '/login', payload: { user: 'ada', token } })
      await ask({ method: 'POST', url: '/login', payload: { user: 5, password: token } })
    }
  }
  await askAll()
  redis.program.signal('SIGSTOP')
  await Promise.all([
    ask({ method: 'POST', url: '/views', headers: bearer(kept), payload: { item: 'late' } }),
    ask({ method: 'POST', url: '/logout', headers: bearer(kept) }),
  ])
  redis.program.signal('SIGKILL')
  await redis.program.exited
  await askAll()

  const lines = log.text()
  expect(lines).toContain('"status":200')
  expect(lines).toContain('ONETRIP_OUTCOME_UNKNOWN')
  expect(lines).toContain('ONETRIP_NOT_SENT')
  for (const hidden of [...tokens.map((token) => token.slice(33)), secret]) {
    expect(lines).not.toContain(hidden)
    expect(answers.join('\n')).not.toContain(hidden)
  }
})

test('an unexpected error, even null, is logged, and the response does not reveal it', async () => {
  const log = logged()
  const app = await appForThisTest(server.socket, {
    logger: log.logger,
    async publicRoutes(own) {
      own.post('/throws', async () => {
        throw null
      })
    },
    authenticator: {
      credentials: { type: 'object' },
      claimedUser: () => 'ada',
      authenticate: async () => {
        throw Object.assign(new Error('the directory at 10.0.0.7 is away'), {
          command: { name: 'HGET', args: ['a-token'] },
        })
      },
    },
  })
  const headers = { authorization: 'Bearer a-token', cookie: 'onetrip=a-token' }
  const send = async (url: string, payload: object) =>
    (await app.inject({ method: 'POST', url, headers, payload })).json()
  const error = {
    statusCode: 500,
    code: 'API_INTERNAL',
    error: 'Internal Server Error',
    message: 'internal error; the log has the details',
    mayHaveWritten: true,
    retrySafe: false,
  }
  expect(await send('/login', { password: 'a-password' })).toEqual(error)
  expect(await send('/throws', {})).toEqual(error)
  expect(log.text()).toContain('the directory at 10.0.0.7 is away')
  expect(log.text()).not.toMatch(/a-token|a-password/)
})
