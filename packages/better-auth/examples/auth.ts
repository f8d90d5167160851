import { betterAuthStorage } from '@onetrip/better-auth'
import { SessionStore } from '@onetrip/session-store'
import { betterAuth } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'

const secret = process.env.SESSION_SECRET ?? '' // 32 characters or more
export const store = new SessionStore({
  redis: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
  tokens: { secrets: [secret] },
})
await store.ready()

export const auth = betterAuth({
  secret,
  secondaryStorage: betterAuthStorage(store),
  database: memoryAdapter({ user: [], session: [], account: [], verification: [] }), // yours
  emailAndPassword: { enabled: true },
})
