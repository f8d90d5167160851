import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import Fastify from 'fastify'
import { onTestFinished } from 'vitest'
import type { SessionStore } from '../../src/core/index.ts'
import { expressSessions } from '../../src/web/express.ts'
import { fastifySessions } from '../../src/web/fastify.ts'
import type { StoreChoice, WebOptions } from '../../src/web/options.ts'

export type Options = WebOptions & StoreChoice

interface Running {
  store: SessionStore
  url: string
  close(): Promise<void>
}

/** What the calls of `/late` have thrown. */
export const late: unknown[] = []

type Call = 'login' | 'loginGuest' | 'logout'

/** The error of a call. */
async function calledOn(target: Record<Call, (user: string) => Promise<unknown>>, call: Call) {
  return await target[call]('ada').then(
    () => undefined,
    (error: unknown) => error,
  )
}

/** The same routes with each framework. */
export const frameworks: Record<string, (options: Options) => Promise<Running>> = {
  async fastify(options) {
    const app = Fastify()
    await app.register(fastifySessions, options)
    app.post<{ Params: { user: string } }>('/login/:user', async (request, reply) => {
      const remember = 'remember' in (request.query as object)
      const { user } = await reply.login(request.params.user, { remember })
      return { user, views: (await request.session.recordView('welcome')).views }
    })
    app.post('/guest', async (_request, reply) => {
      await reply.loginGuest()
    })
    app.post<{ Params: { theme: string } }>('/data/:theme', (request) =>
      request.session.patch({ theme: request.params.theme }),
    )
    app.get('/data', (request) => request.session.data())
    app.route({
      method: ['GET', 'POST'],
      url: '/find',
      handler: async ({ session }) => ({ found: await session.find({ data: true }) }),
    })
    app.get('/viewed', async (request) => ({ items: await request.session.viewedItems() }))
    app.post<{ Params: { item: string } }>('/views/:item', (request) =>
      request.session.recordView(request.params.item),
    )
    app.get('/me', (request) => request.session.check({ data: true }))
    app.post('/me', (request) => request.session.touch())
    app.post('/logout', async (_request, reply) => ({ ended: await reply.logout() }))
    app.post('/login-and-logout', async (_request, reply) => {
      await reply.login('ada')
      return { ended: await reply.logout() }
    })
    app.get('/themed', (request, reply) => {
      reply.header('set-cookie', 'theme=dark')
      return request.session.check()
    })
    app.post('/mistaken/:call', async (request, reply) => {
      const { call } = request.params as { call: string }
      if (call === 'login') return await reply.login(42 as never)
      if (call === 'options') return await reply.login('ada', 42 as never)
      return await request.session.recordView(undefined as never)
    })
    // Called after the response: `reply.send`, `reply.hijack`, or headers that were sent by `reply.raw`.
    app.post('/late/:call/:how', async (request, reply) => {
      const { call, how } = request.params as { call: 'login'; how: string }
      if (how === 'sent meanwhile') {
        const calling = calledOn(reply, call)
        reply.send({})
        late.push(await calling)
        return reply
      }
      if (how === 'hijacked') reply.hijack()
      if (how === 'sent') reply.send({})
      if (how === 'begun') reply.raw.flushHeaders()
      const error = await calledOn(reply, call)
      if (how !== 'sent') reply.raw.end()
      late.push(error)
      return reply
    })
    app.get('/broken', async () => {
      throw Object.assign(new Error('broken'), { statusCode: 500, code: 'E_BROKEN' })
    })
    const url = await app.listen()
    return { store: app.store, url, close: () => app.close() }
  },
  async express(options) {
    const sessions = await expressSessions(options)
    const app = express()
    app.use(sessions.middleware)
    app.post('/login/:user', async (req, res) => {
      const remember = 'remember' in req.query
      const { user } = await req.onetrip.login(req.params.user, { remember })
      res.json({ user, views: (await req.onetrip.recordView('welcome')).views })
    })
    app.post('/guest', async (req, res) => {
      await req.onetrip.loginGuest()
      res.end()
    })
    app.post('/data/:theme', async (req, res) => {
      res.json(await req.onetrip.patch({ theme: req.params.theme }))
    })
    app.get('/data', async (req, res) => res.json(await req.onetrip.data()))
    app.all('/find', async (req, res) => {
      res.json({ found: await req.onetrip.find({ data: true }) })
    })
    app.get('/viewed', async (req, res) => {
      res.json({ items: await req.onetrip.viewedItems() })
    })
    app.post('/views/:item', async (req, res) => {
      res.json(await req.onetrip.recordView(req.params.item))
    })
    app.get('/me', async (req, res) => res.json(await req.onetrip.check({ data: true })))
    app.post('/me', async (req, res) => res.json(await req.onetrip.touch()))
    app.post('/logout', async (req, res) => res.json({ ended: await req.onetrip.logout() }))
    app.post('/login-and-logout', async (req, res) => {
      await req.onetrip.login('ada')
      res.json({ ended: await req.onetrip.logout() })
    })
    app.get('/themed', async (req, res) => {
      res.cookie('theme', 'dark')
      res.json(await req.onetrip.check())
    })
    app.post('/mistaken/:call', async (req, res) => {
      const { call } = req.params
      if (call === 'login') res.json(await req.onetrip.login(42 as never))
      if (call === 'options') res.json(await req.onetrip.login('ada', 42 as never))
      res.json(await req.onetrip.recordView(undefined as never))
    })
    app.post('/late/:call/:how', async (req, res) => {
      const { call, how } = req.params as { call: 'login'; how: string }
      if (how === 'sent meanwhile') {
        const calling = calledOn(req.onetrip, call)
        res.json({})
        late.push(await calling)
        return
      }
      if (how === 'sent') res.json({})
      if (how === 'begun') res.flushHeaders()
      const error = await calledOn(req.onetrip, call)
      if (how !== 'sent') res.end()
      late.push(error)
    })
    app.get('/broken', () => {
      throw Object.assign(new Error('broken'), { statusCode: 500, code: 'E_BROKEN' })
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
