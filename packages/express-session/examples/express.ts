import { ExpressSessionStore } from '@onetrip/express-session'
import { SessionStore } from '@onetrip/session-store'
import express from 'express'
import session from 'express-session'

declare module 'express-session' {
  interface SessionData {
    user?: string
    theme?: string
  }
}

const secret = process.env.SESSION_SECRET ?? '' // 32 characters or more
const store = new SessionStore({
  redis: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
  tokens: { secrets: [secret] },
})
await store.ready()

const sessions = new ExpressSessionStore(store, { userOf: ({ user }) => user as string })
const cookie = { maxAge: 24 * 3600 * 1000, sameSite: 'lax' } as const
const app = express()
app.use(session({ store: sessions, secret, resave: false, saveUninitialized: false, cookie }))
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
