import { createCluster, createSessionStore, partitionedKeys } from '@onetrip/session-store'

const port = Number(process.env.REDIS_PORT ?? 7000)
const cluster = createCluster([{ host: '127.0.0.1', port }])
const store = createSessionStore({
  client: cluster,
  keys: partitionedKeys(64), // the same number in every process, for as long as the data lives
  tokens: { secrets: [process.env.SESSION_SECRET ?? ''] },
})
await store.ready()

const { token } = await store.login('ada')
console.log(await store.recordView(token, 'book')) // one pipeline per node, sent together

await store.close()
cluster.disconnect() // the store does not close a client of yours
