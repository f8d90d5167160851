import { SessionStore } from '@onetrip/session-store'
import { createApp } from './app.ts'

const { HOST = '127.0.0.1', PORT = '3000', REDIS_URL, SESSION_SECRET = '' } = process.env

const store = new SessionStore({
  redis: REDIS_URL ?? 'redis://127.0.0.1:6379',
  tokens: { secrets: [SESSION_SECRET] }, // 32 characters or more
})
await store.ready()
const app = await createApp(store)
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await app.close()
    await store.close()
  })
}
console.log(`Listening on ${await app.listen({ host: HOST, port: Number(PORT) })}`)
