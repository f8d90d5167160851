import { createSessionStore, type Outcome, safeRedisOptions } from '@onetrip/session-store'
import { Redis } from 'ioredis'

const options = { ...safeRedisOptions, lazyConnect: true, enableAutoPipelining: true }
const redis = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379', options)
await redis.connect()

const store = createSessionStore({
  sender: {
    name: 'autopipelining',
    // ioredis writes the calls of one event-loop turn together.
    send: ({ commands }) =>
      Promise.all(
        commands.map(([name, ...args]) =>
          redis.call(name, ...args).then(
            (reply) => reply as Outcome,
            (error: Error) => error,
          ),
        ),
      ),
    close: async () => void (await redis.quit()),
  },
  tokens: { secrets: [process.env.SESSION_SECRET ?? ''] },
})

const { token } = await store.login('ada')
console.log(await store.recordView(token, 'book')) // { user: 'ada', views: 1 }
await store.close()
