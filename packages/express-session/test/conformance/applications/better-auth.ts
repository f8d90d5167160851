import { betterAuthStorage } from '@onetrip/better-auth'
import { betterAuth, type SecondaryStorage } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'
import express from 'express'
import { Redis } from 'ioredis'
import { type Contender, pass } from '../application.ts'
import { serveExpress } from './servers.ts'
import { expireKeys, storeOn } from './stores.ts'

interface Backend {
  storage: SecondaryStorage
  close(): Promise<unknown>
}

/** Redis as its secondary storage, as its documentation shows: get, set with EX, del. */
async function plain(redisPort: number): Promise<Backend> {
  const redis = new Redis(redisPort)
  redis.on('error', () => {})
  const storage: SecondaryStorage = {
    get: (key) => redis.get(key),
    set: (key, value, ttl) => (ttl ? redis.set(key, value, 'EX', ttl) : redis.set(key, value)),
    async delete(key) {
      await redis.del(key)
    },
    getAndDelete: (key) => redis.getdel(key),
    async increment(key, ttl) {
      await redis.set(key, 0, 'EX', ttl, 'NX')
      return await redis.incr(key)
    },
  }
  return { storage, close: async () => redis.disconnect() }
}

async function ours(redisPort: number, secrets: readonly string[]): Promise<Backend> {
  const store = await storeOn(redisPort, secrets)
  return { storage: betterAuthStorage(store), close: () => store.close() }
}

/** The application does not change between the two. */
const onBetterAuth = (name: string, backend: typeof ours): Contender => ({
  name,
  async start({ redisPort, secrets }) {
    const { storage, close } = await backend(redisPort, secrets)
    let holding: string | undefined
    const database = { user: [], session: [], account: [], verification: [] }
    const auth = betterAuth({
      // With several secrets, the first one signs.
      ...(secrets.length > 1
        ? { secrets: secrets.map((value, index) => ({ version: secrets.length - index, value })) }
        : { secret: secrets[0] ?? '' }),
      baseURL: 'http://127.0.0.1',
      database: memoryAdapter(database),
      secondaryStorage: {
        ...storage,
        async get(key) {
          const value = await storage.get(key)
          // The request that waits has read its session, and has not yet written it.
          const name = holding
          if (`${value}`.startsWith('{') && name !== undefined) {
            holding = undefined
            await pass(name)
          }
          return value
        },
      },
      session: { updateAge: 0 }, // each request writes the session, as with a rolling cookie
      rateLimit: { enabled: false },
      advanced: { disableCSRFCheck: true },
      emailAndPassword: {
        enabled: true,
        password: {
          hash: async (text) => text,
          verify: async ({ hash, password }) => hash === password,
        },
      },
      logger: { disabled: true },
    })
    const app = express()
    app.use(express.json({ limit: '4mb' }))
    type Run = (
      headers: Headers,
      body: Record<string, string>,
    ) => Promise<Response | object | number>
    const routes: Record<string, Run> = {
      'POST /login': async (headers, { user }) => {
        const body = {
          email: `${user}@example.com`,
          password: 'password-of-a-test',
          name: `${user}`,
        }
        const known = database.user.some(({ email }: { email: string }) => email === body.email)
        return known
          ? await auth.api.signInEmail({ headers, body, asResponse: true })
          : await auth.api.signUpEmail({ headers, body, asResponse: true })
      },
      'GET /me': async (headers) => {
        holding = headers.get('hold') ?? undefined
        const { response, headers: cookies } = await auth.api.getSession({
          headers,
          returnHeaders: true,
        })
        if (response === null) return 401
        return Response.json({ user: response.user.name, fields: {} }, { headers: cookies })
      },
      'POST /logout': (headers) => auth.api.signOut({ headers, asResponse: true }),
      'GET /sessions': async (headers) => ({
        count: (await auth.api.listSessions({ headers })).length,
      }),
      'POST /end-all': (headers) => auth.api.revokeSessions({ headers, asResponse: true }),
    }
    app.use(async (request, response) => {
      const run = routes[`${request.method} ${request.path}`]
      const headers = new Headers()
      for (const name of ['cookie', 'hold']) headers.set(name, request.get(name) ?? '')
      if (!request.get('hold')) headers.delete('hold')
      const answer = run ? await run(headers, request.body ?? {}) : 501
      if (typeof answer === 'number') return void response.status(answer).json({})
      if (!(answer instanceof Response)) return void response.json(answer)
      const cookies = answer.headers.getSetCookie()
      if (cookies.length > 0) response.setHeader('set-cookie', cookies)
      response.status(answer.status).send(await answer.text())
    })
    const served = await serveExpress(app, {}, () => {}, close)
    return { ...served, expire: () => expireKeys(redisPort) }
  },
})

export const betterAuthRedis = onBetterAuth('better-auth with Redis', plain)
export const betterAuthOurs = onBetterAuth('better-auth with our storage', ours)
