import { createSessionStore } from '@onetrip/session-store'
import { expressSessionStore } from '@onetrip/session-store/express-session'
import express from 'express'
import session from 'express-session'

declare module 'express-session' {
  interface SessionData {
    theme?: string
  }
}

const secret = process.env.SESSION_SECRET ?? '' // 32 characters or more
const store = createSessionStore({
  url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
  tokens: false, // only tokens of this package need a secret
  idleSeconds: 24 * 3600, // at least the maxAge of the cookie
})
await store.ready()

const app = express()
app.use(
  session({
    store: expressSessionStore(store), // the changed line
    secret,
    resave: false,
    saveUninitialized: false,
    cookie: { maxAge: 24 * 3600 * 1000, sameSite: 'lax' },
  }),
)
app.post('/theme/:theme', (req, res) => {
  req.session.theme = req.params.theme
  res.json({ theme: req.session.theme })
})
app.get('/theme', (req, res) => res.json({ theme: req.session.theme ?? null }))
app.post('/logout', (req, res, next) => {
  req.session.destroy((error) => (error ? next(error) : res.json({})))
})

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log(server.address()))
process.once('SIGTERM', () => server.close(() => store.close()))
