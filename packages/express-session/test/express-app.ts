import { once } from 'node:events'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import express, { type ErrorRequestHandler, type Request, type Response } from 'express'
import session, { type SessionOptions } from 'express-session'
import { expect, onTestFinished } from 'vitest'
import { ExpressSessionStore, type StoreOptions } from '../src/express.ts'
import type { sessionServer } from './fixture.ts'

const require = createRequire(import.meta.url)

/** `cookie.originalMaxAge`: express-session loses the time between two calls of Date.now(), usually nothing. */
export const rounded = (ms: number): number => expect.closeTo(ms, -3)

type Express = typeof import('express')

/** The tested versions of Express. */
export const versionsOfExpress: [version: string, express: Express, adapter: StoreOptions][] = [
  ['Express 5', express, {}],
  ['Express 5, with userOf', express, { userOf: ({ user }) => user as string | undefined }],
  ['Express 4', require('express-4'), {}],
]

interface Options {
  express?: Express
  session?: Partial<SessionOptions>
  adapter?: StoreOptions
}

/** An application with express-session. Each call of `browser` returns a new client with its own cookies. */
export async function expressForThisTest(
  server: ReturnType<typeof sessionServer>,
  { express: version = express, session: options, adapter: adapterOptions }: Options = {},
) {
  const store = await server.start()
  const app = version()
  const adapter = new ExpressSessionStore(store, adapterOptions)
  app.use(
    session({
      secret: 'keyboard cat',
      resave: false,
      saveUninitialized: false,
      ...options,
      store: adapter,
    }),
  )
  const held = new Map<string, { arrived: () => void; go: Promise<void> }>()
  const act = async (request: Request, response: Response) => {
    const { set = {}, maxAge, hold, call } = request.body
    if (hold) {
      const { arrived, go } = held.get(hold) ?? {}
      arrived?.()
      await go
    }
    Object.assign(request.session, set)
    if (maxAge) request.session.cookie.maxAge = maxAge
    if (call === 'twice') {
      await new Promise((saved) => request.session.save(saved))
      Object.assign(request.session, { again: true })
      await new Promise((saved) => request.session.save(saved))
    }
    response.json({ id: request.sessionID, session: request.session ?? null })
  }
  app.post('/', version.json(), act)
  const failures: { error: unknown; headersSent: boolean }[] = []
  const onError: ErrorRequestHandler = (error, _request, { headersSent }, _next) =>
    void failures.push({ error, headersSent })
  app.use(onError)
  const listening = app.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  onTestFinished(() => {
    listening.closeAllConnections()
    listening.close()
  })
  const url = `http://127.0.0.1:${(listening.address() as AddressInfo).port}/`

  interface Step {
    set?: Record<string, unknown>
    maxAge?: number
    hold?: string
    call?: 'twice'
  }
  const browser = () => {
    let cookie = ''
    return async (step: Step = {}) => {
      const headers = { cookie, 'content-type': 'application/json' }
      const body = JSON.stringify(step)
      const response = await fetch(url, { method: 'POST', headers, body })
      expect(response.status).toBe(200)
      const [given] = response.headers.getSetCookie()
      if (given) cookie = given.split(';')[0] ?? ''
      return (await response.json()) as { id: string; session: Record<string, unknown> | null }
    }
  }
  /** A request with `hold: name` loads its session, then waits until `release` is called. */
  const hold = (name: string) => {
    const arrived = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    held.set(name, { arrived: arrived.resolve, go: go.promise })
    return { arrived: arrived.promise, release: go.resolve }
  }
  return { store, adapter, browser, hold, failures }
}
