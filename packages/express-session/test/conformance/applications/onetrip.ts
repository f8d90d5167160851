import { expressSessions } from '@onetrip/session-store/express'
import { fastifySessions, type RequestSession } from '@onetrip/session-store/fastify-named'
import express, { type ErrorRequestHandler } from 'express'
import Fastify from 'fastify'
import { Redis } from 'ioredis'
import { type Contender, listen, pass } from '../application.ts'
import { storeOn } from './stores.ts'

interface Change {
  field: string
  value?: unknown
}

/** What the routes of both plugins do. */
const routes = {
  async me(session: RequestSession, hold?: string) {
    const { user, data } = await session.check({ data: true })
    await pass(hold)
    await session.touch()
    return { user, fields: data.fields }
  },
  async set(session: RequestSession, { field, value }: Change, hold?: string) {
    await session.check()
    await pass(hold)
    return { version: await session.patch({ [field]: value as never }) }
  },
  async increment(session: RequestSession, { field }: Change) {
    for (;;) {
      const { fields, version } = await session.data()
      const next = Number(fields[field] ?? 0) + 1
      try {
        return { version: await session.patch({ [field]: next }, { ifVersion: version }) }
      } catch (error) {
        if ((error as { code?: string }).code !== 'ONETRIP_CONFLICT') throw error
      }
    }
  },
}

async function open(redisPort: number, secrets: readonly string[]) {
  const store = await storeOn(redisPort, secrets)
  /** Makes all sessions idle for too long, then runs a janitor. */
  const expire = async () => {
    const client = new Redis(redisPort)
    for (const id of await client.zrange('recent:', '0', '-1')) await client.zadd('recent:', 1, id)
    client.disconnect()
    await store.janitor().runOnce()
  }
  return { store, expire }
}

export const onetripFastify: Contender = {
  name: 'Onetrip, Fastify',
  async start({ redisPort, secrets }) {
    const { store, expire } = await open(redisPort, secrets)
    const app = Fastify({ forceCloseConnections: true })
    await app.register(fastifySessions, {
      store,
      cookie: { secure: false },
      decorators: { session: 'onetrip', store: 'sessions' },
    })
    const sessionOf = (request: unknown) => (request as { onetrip: RequestSession }).onetrip
    const holdOf = ({ headers }: { headers: Record<string, unknown> }) => headers.hold as string
    app.post<{ Body: { user: string } }>('/login', async ({ body }, reply) => {
      await reply.login(body.user)
      return {}
    })
    app.post<{ Body: Change }>('/guest', async ({ body }, reply) => {
      const { token } = await reply.loginGuest()
      await store.patch(token, { [body.field]: body.value as never })
      return {}
    })
    app.get('/me', (request) => routes.me(sessionOf(request), holdOf(request)))
    app.post<{ Body: Change }>('/set', (request) =>
      routes.set(sessionOf(request), request.body, holdOf(request)),
    )
    app.post<{ Body: Change }>('/increment', (request) =>
      routes.increment(sessionOf(request), request.body),
    )
    app.post('/regenerate', async (request, reply) => {
      const { user } = await sessionOf(request).check()
      await reply.login(`${user}`)
      return {}
    })
    app.post('/logout', async (_request, reply) => ({ ended: await reply.logout() }))
    app.get('/sessions', async (request) => ({
      count: (await store.userSessions(sessionOf(request).token)).sessions.length,
    }))
    app.post('/end-all', async (request) => ({
      ended: await store.logoutEverywhere(sessionOf(request).token),
    }))
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    const close = async () => {
      await app.close()
      await store.close()
    }
    return { url, expire, close }
  },
}

export const onetripExpress: Contender = {
  name: 'Onetrip, Express',
  async start({ redisPort, secrets }) {
    const { store, expire } = await open(redisPort, secrets)
    const sessions = await expressSessions({ store, cookie: { secure: false } })
    const app = express()
    app.use(sessions.middleware, express.json({ limit: '4mb' }))
    app.post('/login', async ({ body, onetrip }, response) => {
      await onetrip.login(body.user)
      response.json({})
    })
    app.post('/guest', async ({ body, onetrip }, response) => {
      const { token } = await onetrip.loginGuest()
      await store.patch(token, { [body.field]: body.value })
      response.json({})
    })
    app.get('/me', async ({ onetrip, headers }, response) => {
      response.json(await routes.me(onetrip, `${headers.hold}`))
    })
    app.post('/set', async ({ onetrip, body, headers }, response) => {
      response.json(await routes.set(onetrip, body, `${headers.hold}`))
    })
    app.post('/increment', async ({ onetrip, body }, response) => {
      response.json(await routes.increment(onetrip, body))
    })
    app.post('/regenerate', async ({ onetrip }, response) => {
      const { user } = await onetrip.check()
      await onetrip.login(`${user}`)
      response.json({})
    })
    app.post('/logout', async ({ onetrip }, response) => {
      response.json({ ended: await onetrip.logout() })
    })
    app.get('/sessions', async ({ onetrip }, response) => {
      response.json({ count: (await store.userSessions(onetrip.token)).sessions.length })
    })
    app.post('/end-all', async ({ onetrip }, response) => {
      response.json({ ended: await store.logoutEverywhere(onetrip.token) })
    })
    app.use(sessions.errorHandler)
    app.use(((_error, _request, response, _next) => {
      response.status(500).json({})
    }) satisfies ErrorRequestHandler)
    const { url, server } = await listen(app)
    const close = async () => {
      server.closeAllConnections()
      server.close()
      await sessions.close()
      await store.close()
    }
    return { url, expire, close }
  },
}
