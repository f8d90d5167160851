import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import Fastify from 'fastify'
import { expressSessions } from '../../src/express.ts'
import { fastifySessions } from '../../src/fastify.ts'
import type { SessionStore } from '../../src/index.ts'
import type { StoreChoice, WebOptions } from '../../src/web/sessions.ts'

export type Options = WebOptions & StoreChoice

interface Running {
  store: SessionStore
  url: string
  close(): Promise<void>
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
    app.get('/viewed', async (request) => ({ items: await request.session.viewedItems() }))
    app.post<{ Params: { item: string } }>('/views/:item', (request) =>
      request.session.recordView(request.params.item),
    )
    app.get('/me', (request) => request.session.check({ data: true }))
    app.post('/me', (request) => request.session.touch())
    app.post('/logout', async (_request, reply) => ({ ended: await reply.logout() }))
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
    app.get('/viewed', async (req, res) => {
      res.json({ items: await req.onetrip.viewedItems() })
    })
    app.post('/views/:item', async (req, res) => {
      res.json(await req.onetrip.recordView(req.params.item))
    })
    app.get('/me', async (req, res) => res.json(await req.onetrip.check({ data: true })))
    app.post('/me', async (req, res) => res.json(await req.onetrip.touch()))
    app.post('/logout', async (req, res) => res.json({ ended: await req.onetrip.logout() }))
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
