import { RedisStore } from 'connect-redis'
import session from 'express-session'
import { createClient } from 'redis'
import { onTestFinished } from 'vitest'
import type { SessionStoreOptions } from '../../src/core/index.ts'
import { Clock, type retentionServer } from '../retention-fixture.ts'

export const IDLE_SECONDS = 3600

/** Returns a function that creates a store, and connect-redis with its client of node-redis. */
export const migrationForEachTest =
  (server: ReturnType<typeof retentionServer>) =>
  async (prefix?: string, options: Partial<SessionStoreOptions> = {}) => {
    const clock = new Clock()
    const store = await server.storeForThisTest(clock, { idleSeconds: IDLE_SECONDS, ...options })
    const client = createClient({ socket: { path: server.socket, tls: false } })
    client.on('error', () => undefined)
    await client.connect()
    onTestFinished(() => client.destroy())
    const old = new RedisStore({ client, ...(prefix && { prefix }) })
    const send = (command: string[]) => client.sendCommand<unknown>(command)
    return { clock, store, old, client, send }
  }

const cookieFor = (seconds?: number) => {
  const cookie = new session.Cookie()
  if (seconds !== undefined) cookie.maxAge = 1000 * seconds
  return cookie
}

/** Saves a session in connect-redis. Without `seconds`, its cookie has no expiry. */
export const make = (old: RedisStore, id: string, fields: object, seconds?: number) =>
  old.set(id, { ...fields, cookie: cookieFor(seconds) } as unknown as session.SessionData)
