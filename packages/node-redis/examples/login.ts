import { nodeRedisSender } from '@onetrip/node-redis'
import { batching, SessionStore } from '@onetrip/session-store'
import { createClient } from 'redis'

const url = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379'
const client = createClient({ url, disableOfflineQueue: true })
client.on('error', (error) => console.error(error.message))
await client.connect()

const store = new SessionStore({
  sender: batching(nodeRedisSender(client)),
  tokens: { secrets: [process.env.SESSION_SECRET ?? ''] },
})

const { token } = await store.login('ada')
console.log(await store.recordView(token, 'book')) // { user: 'ada', views: 1 }
await store.close()
