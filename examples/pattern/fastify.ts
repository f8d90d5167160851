// batch.ts in a Fastify application, with the token in a cookie that no script can read.
import Fastify from 'fastify'
import { openSessions } from './batch.ts'

const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Lax'
const tokenIn = (cookies = '') => /(?:^|; )__Host-session=([\w-]+)/.exec(cookies)?.[1] ?? ''

/** @param authenticate yours: checks the body of a login, and returns the user */
export async function openApp(url: string, authenticate: (body: unknown) => Promise<string>) {
  const sessions = await openSessions(url)
  const app = Fastify()
  app.addHook('onClose', () => sessions.close())
  app.post('/login', async ({ body }, reply) => {
    const token = await sessions.login(await authenticate(body))
    return reply.header('set-cookie', `__Host-session=${token}; ${ATTRIBUTES}`).code(204).send()
  })
  app.post<{ Params: { item: string } }>('/views/:item', async ({ headers, params }, reply) => {
    const view = await sessions.view(tokenIn(headers.cookie), params.item)
    return view ?? reply.code(401).send({ message: 'log in first' })
  })
  app.post('/logout', async ({ headers }) => ({
    ended: await sessions.logout(tokenIn(headers.cookie)),
  }))
  return app
}
