import { cluster } from '@onetrip/cluster'
import { SessionStore } from '@onetrip/session-store'

const port = Number(process.env.REDIS_PORT ?? 7000)
const store = new SessionStore({
  ...cluster({
    redis: `redis+cluster://127.0.0.1:${port}`, // name several nodes: one may be down
    partitions: 64, // the same number in every process; it cannot change later
  }),
  tokens: { secrets: [process.env.SESSION_SECRET ?? ''] },
})
await store.ready()

const { token } = await store.login('ada')
console.log(await store.recordView(token, 'book')) // to its nodes at the same time

await store.close()
