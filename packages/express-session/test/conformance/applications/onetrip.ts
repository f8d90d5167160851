import type { SessionStore } from '@onetrip/session-store'
import { expressSessions } from '@onetrip/session-store/express'
import { fastifySessions, type RequestSession } from '@onetrip/session-store/fastify-named'
import express from 'express'
import Fastify from 'fastify'
import { Redis } from 'ioredis'
import { type Contender, pass } from '../application.ts'
import { type Body, type Routes, serveExpress, serveFastify } from './servers.ts'
import { storeOn } from './stores.ts'

/** A request, as both plugins have it. */
interface Call {
  body: Body
  hold: string | string[] | undefined
  session: RequestSession
  login(user: string): Promise<unknown>
  loginGuest(): Promise<{ token: string }>
  logout(): Promise<boolean>
}

const routesOf = (store: SessionStore): Routes<Call> => ({
  'POST /login': async ({ login, body }) => {
    await login(body.user)
    return {}
  },
  'POST /guest': async ({ loginGuest, body }) => {
    const { token } = await loginGuest()
    await store.patch(token, { [body.field]: body.value as never })
    return {}
  },
  'GET /me': async ({ session, hold }) => {
    const { user, data } = await session.check({ data: true })
    await pass(hold)
    await session.touch()
    return { user, fields: data.fields }
  },
  'POST /set': async ({ session, body, hold }) => {
    await session.check()
    await pass(hold)
    return { version: await session.patch({ [body.field]: body.value as never }) }
  },
  'POST /increment': async ({ session, body: { field } }) => {
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
  'POST /regenerate': async ({ session, login }) => {
    await login(`${(await session.check()).user}`)
    return {}
  },
  'POST /logout': async ({ logout }) => ({ ended: await logout() }),
  'GET /sessions': async ({ session }) => ({
    count: (await store.userSessions(session.token)).sessions.length,
  }),
  'POST /end-all': async ({ session }) => ({ ended: await store.logoutEverywhere(session.token) }),
})

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
    const served = await serveFastify<Call>(
      app,
      routesOf(store),
      (request, reply) => ({
        body: request.body,
        hold: request.headers.hold,
        session: (request as unknown as { onetrip: RequestSession }).onetrip,
        login: (user) => reply.login(user),
        loginGuest: () => reply.loginGuest(),
        logout: () => reply.logout(),
      }),
      () => store.close(),
    )
    return { ...served, expire }
  },
}

export const onetripExpress: Contender = {
  name: 'Onetrip, Express',
  async start({ redisPort, secrets }) {
    const { store, expire } = await open(redisPort, secrets)
    const sessions = await expressSessions({ store, cookie: { secure: false } })
    const app = express()
    app.use(sessions.middleware, express.json({ limit: '4mb' }))
    const close = async () => {
      await sessions.close()
      await store.close()
    }
    const served = await serveExpress<Call>(
      app,
      routesOf(store),
      ({ body, headers, onetrip }) => ({
        body,
        hold: headers.hold,
        session: onetrip,
        login: (user) => onetrip.login(user),
        loginGuest: () => onetrip.loginGuest(),
        logout: () => onetrip.logout(),
      }),
      close,
      sessions.errorHandler,
    )
    return { ...served, expire }
  },
}
