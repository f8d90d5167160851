// batch.ts in an Express 5 application, with the token in a cookie that no script can read.
import express from 'express'
import { openSessions } from './batch.ts'

const ATTRIBUTES = { path: '/', secure: true, httpOnly: true, sameSite: 'lax' } as const
const tokenIn = (cookies = '') => /(?:^|; )__Host-session=([\w-]+)/.exec(cookies)?.[1] ?? ''

/** @param authenticate yours: checks the body of a login, and returns the user */
export async function openApp(url: string, authenticate: (body: unknown) => Promise<string>) {
  const sessions = await openSessions(url)
  const app = express().use(express.json())
  app.post('/login', async (req, res) => {
    const token = await sessions.login(await authenticate(req.body))
    res.cookie('__Host-session', token, ATTRIBUTES).status(204).end()
  })
  app.post('/views/:item', async (req, res) => {
    const view = await sessions.view(tokenIn(req.headers.cookie), req.params.item)
    res.status(view ? 200 : 401).json(view ?? { message: 'log in first' })
  })
  app.post('/logout', async (req, res) => {
    res.json({ ended: await sessions.logout(tokenIn(req.headers.cookie)) })
  })
  return { app, close: sessions.close }
}
