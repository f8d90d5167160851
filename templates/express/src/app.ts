import type { SessionStore } from '@onetrip/session-store'
import { expressSessions } from '@onetrip/session-store/express'
import express from 'express'
import { isPasswordOf } from './users.ts'

/** The application on a store: in Redis (server.ts), or in memory (test/app.ts). */
export async function createApp(store: SessionStore) {
  const app = express()
  const secure = process.env.NODE_ENV === 'production' // only over HTTPS
  const sessions = await expressSessions({ store, cookie: { secure } })
  app.use(sessions.middleware, express.json())

  app.get('/healthz', (_req, res) => void res.json({ status: 'ok' }))
  app.post('/login', async (req, res) => {
    const { user, password } = req.body ?? {}
    if (typeof user !== 'string' || !(await isPasswordOf(user, String(password)))) {
      return res.status(401).json({ message: 'wrong user or password' })
    }
    await req.onetrip.login(user)
    return res.json({ user })
  })
  app.post('/views/:item', async (req, res) => {
    res.json(await req.onetrip.recordView(req.params.item))
  })
  app.get('/me', async (req, res) => res.json(await req.onetrip.check()))
  app.post('/logout', async (req, res) => res.json({ ended: await req.onetrip.logout() }))
  app.use(sessions.errorHandler)
  return app
}
