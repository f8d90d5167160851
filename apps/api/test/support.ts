import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { Writable } from 'node:stream'
import { type Sender, SessionStore } from '@onetrip/session-store'
import type { FastifyInstance } from 'fastify'
import { onTestFinished } from 'vitest'
import { type AppOptions, buildApp } from '../src/app.ts'
import { trustingAuthenticator } from '../src/authenticator.ts'
import { type StrategyName, sendingBy } from '../src/strategies/index.ts'

export const secret = 'a-secret-for-tests-a-secret-for-tests'

interface TestOptions extends Partial<Omit<AppOptions, 'store' | 'transport'>> {
  strategy?: StrategyName
  /** Default: long, so that tests do not depend on the load of the machine. */
  deadlineMs?: number
  /** Milliseconds since 1970, for tokens. Default `Date.now`. */
  clock?: () => number
  /** Default: a connection to the socket. */
  sender?: Sender
  maxSessionsPerUser?: number
}

/** Builds the application on this Redis. `close` also closes its store. */
export async function appOn(socket: string, options: TestOptions = {}): Promise<FastifyInstance> {
  const {
    strategy = 'batch',
    deadlineMs = 30_000,
    clock,
    sender,
    maxSessionsPerUser,
    ...appOptions
  } = options
  const store = new SessionStore({
    ...(sender
      ? { sender }
      : sendingBy(strategy, { redis: `unix://${socket}`, poolSize: 1, deadlineMs })),
    ...(maxSessionsPerUser && { maxSessionsPerUser }),
    tokens: {
      secrets: [secret],
      rememberedLifetimeSeconds: 90 * 24 * 3600,
      ...(clock && { clock }),
    },
    deadlineMs,
    janitor: 'elsewhere',
  })
  const app = await buildApp({
    store,
    authenticator: trustingAuthenticator('test'),
    transport: 'unix',
    secureCookie: true,
    ...appOptions,
  })
  app.addHook('onClose', () => store.close())
  return app
}

/** Like `appOn`; waits for Redis, and closes the application when the current test ends. */
export async function appForThisTest(
  socket: string,
  options: TestOptions = {},
): Promise<FastifyInstance> {
  const app = await appOn(socket, options)
  onTestFinished(() => app.close())
  await app.store.ready()
  return app
}

/** Logs in and returns the token. */
export async function login(app: FastifyInstance, user = 'ada'): Promise<string> {
  const answer = await app.inject({ method: 'POST', url: '/login', payload: { user } })
  return answer.json<{ token: string }>().token
}

/** Sends a view. */
export const view = (app: FastifyInstance, token: string, item = 'book') =>
  app.inject({ method: 'POST', url: '/views', headers: bearer(token), payload: { item } })

/** Lets the application listen, and returns its port on 127.0.0.1. */
export async function listen(app: FastifyInstance): Promise<number> {
  await app.listen({ host: '127.0.0.1', port: 0 })
  return (app.server.address() as AddressInfo).port
}

/** Opens a connection, which is closed when the current test ends. The server may close it before. */
export async function connectTo(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** Collects the lines of a log. */
export function collectedLog() {
  const lines: string[] = []
  const stream = new Writable({
    write(line, _encoding, done) {
      lines.push(String(line))
      done()
    },
  })
  return { stream, lines, text: () => lines.join('') }
}

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
