import { createSessionStore } from '@onetrip/session-store'
import { expressSessions } from '@onetrip/session-store/express'
import { expressSessionStore, importConnectRedis } from '@onetrip/session-store/express-session'
import { RedisStore } from 'connect-redis'
import express from 'express'
import session from 'express-session'
import { createClient } from 'redis'

const url = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379'
const secret = process.env.SESSION_SECRET ?? ''
const store = createSessionStore({ url, tokens: { secrets: [secret] } })
const client = createClient(
  url.startsWith('unix:') ? { socket: { path: url.slice(7), tls: false } } : { url },
)
client.on('error', (error) => console.error(error.message))
await Promise.all([store.ready(), client.connect()])

// Step 1: the same cookies, the new store. Sessions of connect-redis move on first use.
const app = express()
const migrateFrom = new RedisStore({ client })
app.use(
  session({
    store: expressSessionStore(store, { migrateFrom }),
    secret,
    resave: false,
    saveUninitialized: false,
  }),
)

// Step 2: a request with an old session gets a token. The data moves to the token's session.
const sessions = await expressSessions({ store, cookie: { secure: false } })
app.use(sessions.middleware)
app.use(async (req, res, next) => {
  const { cookie, user, ...data } = { ...req.session } as Record<string, unknown>
  if (typeof user !== 'string') return next()
  const { token } = await req.onetrip.login(user)
  await store.patch(token, data)
  req.session.destroy((error) => {
    res.clearCookie('connect.sid')
    next(error)
  })
})
app.get('/me', async (req, res) => res.json(await req.onetrip.check({ data: true })))
app.use(sessions.errorHandler)

// Run it once with the argument `import` when the last old process has stopped: copies what nobody has used yet.
if (process.argv.includes('import')) {
  const send = (command: string[]) => client.sendCommand(command)
  console.log(await importConnectRedis(store, { send })) // { imported: 3, existing: 0, skipped: {} }
}

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log(server.address()))
process.once('SIGTERM', () => {
  client.destroy()
  server.close(() => store.close())
})
