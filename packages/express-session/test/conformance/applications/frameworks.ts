import fastifyCookie from '@fastify/cookie'
import fastifySession, { type SessionStore as FastifyStore } from '@fastify/session'
import { RedisStore } from 'connect-redis'
import express, { type Request } from 'express'
import expressSession, { type Store } from 'express-session'
import Fastify, { type FastifyRequest } from 'fastify'
import { createClient } from 'redis'
import { ExpressSessionStore } from '../../../src/express.ts'
import { FastifySessionStore } from '../../../src/fastify.ts'
import { type Contender, pass } from '../application.ts'
import { type Body, type Routes, serveExpress, serveFastify } from './servers.ts'
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

/** A request, as both frameworks have it. */
interface Call {
  body: Body
  /** The name of the hold at which the request waits. */
  hold: string | string[] | undefined
  /** The session of now: `regenerate` replaces it. */
  session(): Fields
  regenerate(): Promise<void>
  save(): Promise<void>
  destroy(): Promise<void>
  /** Extends the session, if the framework does not do so by itself. */
  touch(): void
}

const NOT_FIELDS = ['cookie', 'user', 'sessionId', 'encryptedSessionId']

/** Without the symbols of @fastify/session, which contain the id. */
const fieldsOf = (session: object): Fields =>
  Object.fromEntries(Object.entries(session).filter(([name]) => !NOT_FIELDS.includes(name)))

const routesOf = (users: Users | undefined): Routes<Call> => ({
  'POST /login': async (call) => {
    await call.regenerate()
    call.session().user = call.body.user
    await call.save()
    return {}
  },
  'POST /guest': async ({ session, body }) => {
    session()[body.field] = body.value
    return {}
  },
  'GET /me': async ({ session, hold, touch }) => {
    const { user } = session()
    if (user === undefined) return 401
    await pass(hold)
    touch()
    return { user, fields: fieldsOf(session()) }
  },
  'POST /set': async ({ session, hold, body, save }) => {
    const own = session()
    if (own.user === undefined) return 401
    await pass(hold)
    if (body.value === null) delete own[body.field]
    else own[body.field] = body.value
    await save()
    return {}
  },
  'POST /increment': async ({ session, body, save }) => {
    const own = session()
    own[body.field] = Number(own[body.field] ?? 0) + 1
    await save()
    return {}
  },
  'POST /regenerate': async ({ session, regenerate, save }) => {
    const { user } = session()
    if (user === undefined) return 401
    const fields = fieldsOf(session())
    await regenerate()
    Object.assign(session(), { user, ...fields })
    await save()
    return {}
  },
  'POST /logout': async ({ destroy }) => {
    await destroy()
    return {}
  },
  'GET /sessions': async ({ session }) =>
    users ? { count: await users.countOf(`${session().user}`) } : 501,
  'POST /end-all': async ({ session }) =>
    users ? { ended: await users.endAll(`${session().user}`) } : 501,
})

type Start<Kind> = (redisPort: number, secrets: readonly string[]) => Promise<Backend<Kind>>

const onExpress = (name: string, backend: Start<Store>): Contender => ({
  name,
  async start({ redisPort, secrets }) {
    const { store, users, close } = await backend(redisPort, secrets)
    const app = express()
    app.use(
      expressSession({ store, secret: [...secrets], resave: false, saveUninitialized: false }),
      express.json({ limit: '4mb' }),
    )
    const callOf = (request: Request): Call => {
      const done = (call: 'regenerate' | 'save' | 'destroy') => () =>
        new Promise<void>((resolve, reject) => {
          request.session[call]((error: unknown) => (error ? reject(error) : resolve()))
        })
      return {
        body: request.body,
        hold: request.headers.hold,
        session: () => request.session as unknown as Fields,
        regenerate: done('regenerate'),
        save: done('save'),
        destroy: done('destroy'),
        touch: () => {},
      }
    }
    const served = await serveExpress(app, routesOf(users), callOf, close)
    return { ...served, expire: () => expireKeys(redisPort) }
  },
})

const onFastify = (name: string, backend: Start<FastifyStore>): Contender => ({
  name,
  async start({ redisPort, secrets }) {
    const { store, users, close } = await backend(redisPort, secrets)
    const app = Fastify({ forceCloseConnections: true, bodyLimit: 4 << 20 })
    await app.register(fastifyCookie)
    await app.register(fastifySession, {
      store,
      secret: [...secrets],
      saveUninitialized: false,
      rolling: false,
      cookie: { secure: false, maxAge: 86_400_000 },
    })
    type Session = Fields & Pick<Call, 'regenerate' | 'save' | 'destroy' | 'touch'>
    const callOf = (request: FastifyRequest<{ Body: Body }>): Call => {
      // The plugin of @onetrip/session-store declares another type for request.session.
      const session = () => (request as unknown as { session: Session }).session
      return {
        body: request.body,
        hold: request.headers.hold,
        session,
        regenerate: () => session().regenerate(),
        save: () => session().save(),
        destroy: () => session().destroy(),
        touch: () => session().touch(),
      }
    }
    const served = await serveFastify(app, routesOf(users), callOf, close)
    return { ...served, expire: () => expireKeys(redisPort) }
  },
})

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
