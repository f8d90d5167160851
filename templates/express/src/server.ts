import { SessionStore } from '@onetrip/session-store'
import { createApp } from './app.ts'

const { HOST = '127.0.0.1', PORT = '3000', REDIS_URL, SESSION_SECRET = '' } = process.env

const store = new SessionStore({
  redis: REDIS_URL ?? 'redis://127.0.0.1:6379',
  tokens: { secrets: [SESSION_SECRET] }, // 32 characters or more
})
await store.ready()
const app = await createApp(store)
const server = app.listen(Number(PORT), HOST, (error) => {
  if (error) throw error
  console.log('Listening on', server.address())
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => server.close(() => void store.close()))
}
