import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import Fastify from 'fastify'
import { onTestFinished } from 'vitest'
import type { SessionStore } from '../../src/index.ts'
import { expressSessions } from '../../src/web/express.ts'
import { fastifySessions, type RequestSession } from '../../src/web/fastify.ts'
import type { StoreChoice, WebOptions } from '../../src/web/options.ts'

export type Options = WebOptions & StoreChoice

interface Running {
  store: SessionStore
  url: string
  close(): Promise<void>
}

type Call = 'login' | 'loginGuest' | 'logout'

interface Incoming {
  session: RequestSession
  /** Has the calls that set a cookie: the reply of Fastify, `req.onetrip` in Express. */
  by: Record<Call, (user: string, options?: { remember?: boolean }) => Promise<unknown>>
  /** Removes the cookie. */
  clear(): void
  params: Record<string, string>
  query: object
}

/** The routes of both applications. */
const routes: [path: string, handle: (incoming: Incoming) => Promise<unknown>][] = [
  [
    'POST /login/:user',
    async ({ session, by, params: { user = '' }, query }) => {
      await by.login(user, { remember: 'remember' in query })
      return { user, views: (await session.recordView('welcome')).views }
    },
  ],
  ['POST /guest', async ({ by }) => void (await by.loginGuest(''))],
  ['POST /data/:theme', ({ session, params: { theme } }) => session.patch({ theme })],
  ['GET /data', ({ session }) => session.data()],
  ['GET /find', async ({ session }) => ({ found: await session.find({ data: true }) })],
  ['POST /find', async ({ session }) => ({ found: await session.find({ data: true }) })],
  ['GET /viewed', async ({ session }) => ({ items: await session.viewedItems() })],
  ['POST /views/:item', ({ session, params: { item = '' } }) => session.recordView(item)],
  ['GET /me', ({ session }) => session.check({ data: true })],
  ['POST /me', ({ session }) => session.touch()],
  ['POST /logout', async ({ by }) => ({ ended: await by.logout('') })],
  [
    'POST /check-and/:call',
    async ({ session, by, params: { call } }) => {
      await session.check()
      return { done: await by[call as Call]('ada') }
    },
  ],
  [
    'POST /clear-and-check',
    async ({ session, clear }) => {
      clear()
      return await session.check()
    },
  ],
  [
    'GET /twice',
    async ({ session }) => {
      await session.check()
      return await session.data()
    },
  ],
  ['POST /renew', ({ session }) => session.renew()],
  ['POST /mistaken', ({ by }) => by.login(42 as never)],
  [
    'GET /broken',
    async () => {
      throw Object.assign(new Error('broken'), { statusCode: 500, code: 'E_BROKEN' })
    },
  ],
]

/** What the calls of `/late` have thrown. */
export const late: unknown[] = []

/** Makes a call after, or while, the response is sent in one of these ways. */
async function callLate(
  by: Incoming['by'],
  call: Call,
  ways: Record<string, () => void>,
  how: string,
) {
  const calling = how === 'sent meanwhile' ? by[call]('ada') : undefined
  ways[how]?.()
  late.push(await (calling ?? by[call]('ada')).catch((error: unknown) => error))
}

export const frameworks: Record<string, (options: Options) => Promise<Running>> = {
  async fastify(options) {
    const app = Fastify()
    await app.register(fastifySessions, options)
    for (const [path, handle] of routes) {
      const [method = '', url = ''] = path.split(' ')
      app.route<{ Params: Record<string, string> }>({
        method,
        url,
        handler: async ({ session, params, query }, by) => {
          const clear = () => by.clearSessionCookie()
          return await handle({ session, by: by as never, clear, params, query: query as object })
        },
      })
    }
    app.get('/themed', (request, reply) => {
      reply.header('set-cookie', 'theme=dark')
      return request.session.check()
    })
    app.get('/begun', async (request, reply) => {
      reply.hijack()
      reply.raw.flushHeaders()
      const { user } = await request.session.check()
      reply.raw.end(user)
    })
    app.post<{ Params: { call: Call; how: string } }>(
      '/late/:call/:how',
      async (request, reply) => {
        const { call, how } = request.params
        const send = () => void reply.send({})
        const ways = {
          sent: send,
          'sent meanwhile': send,
          hijacked: () => void reply.hijack(),
          begun: () => reply.raw.flushHeaders(),
        }
        await callLate(reply as never, call, ways, how)
        if (!how.startsWith('sent')) reply.raw.end()
        return reply
      },
    )
    const url = await app.listen()
    return { store: app.store, url, close: () => app.close() }
  },
  async express(options) {
    const sessions = await expressSessions(options)
    const app = express()
    app.use(sessions.middleware)
    for (const [path, handle] of routes) {
      const [method = '', url = ''] = path.split(' ')
      app[method.toLowerCase() as 'get' | 'post'](url, async (req, res) => {
        const { onetrip: session, params, query } = req
        const by = session as never
        const clear = () => session.clearCookie()
        const incoming = { session, by, clear, params: params as Record<string, string>, query }
        res.json(await handle(incoming))
      })
    }
    app.get('/themed', async (req, res) => {
      res.cookie('theme', 'dark')
      res.json(await req.onetrip.check())
    })
    app.get('/begun', async (req, res) => {
      res.flushHeaders()
      const { user } = await req.onetrip.check()
      res.end(user)
    })
    app.post('/late/:call/:how', async (req, res) => {
      const { call, how } = req.params
      const send = () => void res.json({})
      const ways = { sent: send, 'sent meanwhile': send, begun: () => res.flushHeaders() }
      await callLate(req.onetrip as never, call as Call, ways, how)
      res.end()
    })
    app.use(sessions.errorHandler)
    const server = app.listen(0)
    await once(server, 'listening')
    return {
      store: sessions.store,
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      async close() {
        server.close()
        server.closeAllConnections()
        await sessions.close()
      },
    }
  },
}

/** Starts the routes for the current test. */
export async function appForThisTest(
  start: (options: Options) => Promise<Running>,
  options: Options,
) {
  const app = await start(options)
  onTestFinished(() => app.close())
  const send = async (method: string, path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(app.url + path, { method, headers })
    const text = await response.text()
    const body = text.startsWith('{') ? JSON.parse(text) : text
    return { status: response.status, headers: response.headers, body }
  }
  /** Sends `POST path` and returns the new token, and the cookie as a browser sends it. */
  const login = async (path = '/login/ada', headers: Record<string, string> = {}) => {
    const { headers: answer } = await send('POST', path, headers)
    const cookie = answer.getSetCookie().at(-1)?.split(';')[0] ?? ''
    return { cookie, token: cookie.split('=')[1] ?? '' }
  }
  return { ...app, send, login }
}
