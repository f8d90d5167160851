import fastifyCookie from '@fastify/cookie'
import fastifySession, { type SessionStore as FastifyStore } from '@fastify/session'
import { RedisStore } from 'connect-redis'
import express, { type ErrorRequestHandler } from 'express'
import expressSession, { type Store } from 'express-session'
import Fastify from 'fastify'
import { createClient } from 'redis'
import { ExpressSessionStore } from '../../../src/express.ts'
import { FastifySessionStore } from '../../../src/fastify.ts'
import { type Contender, listen, pass } from '../application.ts'
import { expireKeys, storeOn } from './stores.ts'

// express-session and @fastify/session, each with connect-redis and with our store: the same application, the options
// that the README of each store recommends.

interface Users {
  countOf(user: string): Promise<number>
  endAll(user: string): Promise<number>
}

interface Backend<Kind> {
  store: Kind
  /** The sessions of a user, if the store knows them. */
  users?: Users
  close(): Promise<void>
}

type Fields = Record<string, unknown> & { user?: string | undefined }

const userOf = (fields: object) => (fields as Fields).user

async function connectRedis<Kind>(redisPort: number): Promise<Backend<Kind>> {
  const client = createClient({ socket: { host: '127.0.0.1', port: redisPort } })
  client.on('error', () => {}) // node-redis reconnects by itself
  await client.connect()
  const store = new RedisStore({ client }) as unknown as Kind
  return { store, close: async () => client.destroy() }
}

const usersOf = (sessions: ExpressSessionStore | FastifySessionStore): Users => ({
  countOf: async (user) => (await sessions.ofUser(user)).length,
  endAll: (user) => sessions.endUserSessions(user),
})

const fieldsOf = (session: object): Fields => {
  const { cookie, user, ...fields } = { ...session } as Fields
  return fields
}

function onExpress(
  name: string,
  backend: (redisPort: number, secrets: readonly string[]) => Promise<Backend<Store>>,
): Contender {
  return {
    name,
    async start({ redisPort, secrets }) {
      const { store, users, close: closeStore } = await backend(redisPort, secrets)
      const app = express()
      app.use(
        expressSession({ store, secret: [...secrets], resave: false, saveUninitialized: false }),
        express.json({ limit: '4mb' }),
      )
      type Request = express.Request
      const sessionOf = (request: Request) => request.session as typeof request.session & Fields
      const done = (run: (callback: (error?: unknown) => void) => void) =>
        new Promise<void>((resolve, reject) => {
          run((error) => (error ? reject(error) : resolve()))
        })
      const routes: Record<string, (request: Request) => Promise<object | number>> = {
        'POST /login': async (request) => {
          await done((callback) => request.session.regenerate(callback))
          sessionOf(request).user = request.body.user
          await done((callback) => request.session.save(callback))
          return {}
        },
        'POST /guest': async (request) => {
          sessionOf(request)[request.body.field] = request.body.value
          return {}
        },
        'GET /me': async (request) => {
          const session = sessionOf(request)
          if (session.user === undefined) return 401
          await pass(request.headers.hold)
          return { user: session.user, fields: fieldsOf(session) }
        },
        'POST /set': async (request) => {
          const session = sessionOf(request)
          if (session.user === undefined) return 401
          await pass(request.headers.hold)
          const { field, value } = request.body
          if (value === null) delete session[field]
          else session[field] = value
          await done((callback) => session.save(callback))
          return {}
        },
        'POST /increment': async (request) => {
          const session = sessionOf(request)
          session[request.body.field] = Number(session[request.body.field] ?? 0) + 1
          await done((callback) => session.save(callback))
          return {}
        },
        'POST /regenerate': async (request) => {
          const { user, ...fields } = {
            user: sessionOf(request).user,
            ...fieldsOf(request.session),
          }
          if (user === undefined) return 401
          await done((callback) => request.session.regenerate(callback))
          Object.assign(request.session, { user, ...fields })
          await done((callback) => request.session.save(callback))
          return {}
        },
        'POST /logout': async (request) => {
          await done((callback) => request.session.destroy(callback))
          return {}
        },
        'GET /sessions': async (request) =>
          users ? { count: await users.countOf(`${sessionOf(request).user}`) } : 501,
        'POST /end-all': async (request) =>
          users ? { ended: await users.endAll(`${sessionOf(request).user}`) } : 501,
      }
      for (const [route, handle] of Object.entries(routes)) {
        const [method = '', path = ''] = route.split(' ')
        app[method === 'GET' ? 'get' : 'post'](path, async (request, response) => {
          const answer = await handle(request)
          if (typeof answer === 'number') response.status(answer).json({})
          else response.json(answer)
        })
      }
      app.use(((error, _request, response, _next) => {
        // express-session reports a failed save after it has begun to answer.
        if (response.headersSent) response.destroy()
        else response.status(error.status ?? 500).json({})
      }) satisfies ErrorRequestHandler)
      const { url, server } = await listen(app)
      const close = async () => {
        server.closeAllConnections()
        server.close()
        await closeStore()
      }
      return { url, expire: () => expireKeys(redisPort), close }
    },
  }
}

function onFastify(
  name: string,
  backend: (redisPort: number, secrets: readonly string[]) => Promise<Backend<FastifyStore>>,
): Contender {
  return {
    name,
    async start({ redisPort, secrets }) {
      const { store, users, close: closeStore } = await backend(redisPort, secrets)
      const app = Fastify({ forceCloseConnections: true, bodyLimit: 4 << 20 })
      await app.register(fastifyCookie)
      await app.register(fastifySession, {
        store,
        secret: [...secrets],
        saveUninitialized: false,
        rolling: false,
        cookie: { secure: false, maxAge: 86_400_000 },
      })
      type Request = import('fastify').FastifyRequest<{
        Body: Fields & { field: string; value: unknown }
      }>
      const sessionOf = (request: Request) =>
        (request as unknown as { session: Fields & FastifySessionMethods }).session
      const routes: Record<string, (request: Request) => Promise<object | number>> = {
        'POST /login': async (request) => {
          await sessionOf(request).regenerate()
          sessionOf(request).user = request.body.user
          await sessionOf(request).save()
          return {}
        },
        'POST /guest': async (request) => {
          sessionOf(request)[request.body.field] = request.body.value
          return {}
        },
        'GET /me': async (request) => {
          const session = sessionOf(request)
          if (session.user === undefined) return 401
          await pass(request.headers.hold)
          session.touch()
          const { sessionId, encryptedSessionId, ...fields } = fieldsOf(session)
          return { user: session.user, fields }
        },
        'POST /set': async (request) => {
          const session = sessionOf(request)
          if (session.user === undefined) return 401
          await pass(request.headers.hold)
          const { field, value } = request.body
          if (value === null) delete session[field]
          else session[field] = value
          await session.save()
          return {}
        },
        'POST /increment': async (request) => {
          const session = sessionOf(request)
          session[request.body.field] = Number(session[request.body.field] ?? 0) + 1
          await session.save()
          return {}
        },
        'POST /regenerate': async (request) => {
          const session = sessionOf(request)
          if (session.user === undefined) return 401
          await session.regenerate(Object.keys(fieldsOf(session)).concat('user'))
          await sessionOf(request).save()
          return {}
        },
        'POST /logout': async (request) => {
          await sessionOf(request).destroy()
          return {}
        },
        'GET /sessions': async (request) =>
          users ? { count: await users.countOf(`${sessionOf(request).user}`) } : 501,
        'POST /end-all': async (request) =>
          users ? { ended: await users.endAll(`${sessionOf(request).user}`) } : 501,
      }
      for (const [route, handle] of Object.entries(routes)) {
        const [method = '', url = ''] = route.split(' ')
        app.route<{ Body: Fields & { field: string; value: unknown } }>({
          method: method as 'GET',
          url,
          handler: async (request, reply) => {
            const answer = await handle(request)
            return typeof answer === 'number' ? reply.code(answer).send({}) : answer
          },
        })
      }
      const url = await app.listen({ port: 0, host: '127.0.0.1' })
      const close = async () => {
        await app.close()
        await closeStore()
      }
      return { url, expire: () => expireKeys(redisPort), close }
    },
  }
}

interface FastifySessionMethods {
  regenerate(keep?: string[]): Promise<void>
  save(): Promise<void>
  destroy(): Promise<void>
  touch(): void
}

export const expressOurs = onExpress('express-session with our store', async (port, secrets) => {
  const sessions = await storeOn(port, secrets)
  const store = new ExpressSessionStore(sessions, { userOf })
  return { store, users: usersOf(store), close: () => sessions.close() }
})

export const fastifyOurs = onFastify('@fastify/session with our store', async (port, secrets) => {
  const sessions = await storeOn(port, secrets)
  const store = new FastifySessionStore(sessions, { userOf })
  return {
    store: store as unknown as FastifyStore,
    users: usersOf(store),
    close: () => sessions.close(),
  }
})

export const expressConnectRedis = onExpress('express-session with connect-redis', connectRedis)

export const fastifyConnectRedis = onFastify('@fastify/session with connect-redis', connectRedis)
