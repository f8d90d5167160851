import { Batch, ConditionalChange, GlideClient } from '@valkey/valkey-glide'
import { run } from './support/run.ts'

await run({
  async glide({ url, sessions }) {
    const { hostname: host, port } = new URL(url)
    const client = await GlideClient.createClient({
      addresses: [{ host, port: Number(port) }],
      inflightRequestsLimit: Math.max(1_000, sessions.length), // the default of 1,000 refuses 1,024 callers
      requestTimeout: 10_000, // the default of 250 ms would end a run on a busy machine
    })
    return async ({ id }, item) => {
      const now = Date.now() / 1_000
      const batch = new Batch(false)
        .zadd('recent:', { [id]: now }, { conditionalChange: ConditionalChange.ONLY_IF_EXISTS })
        .zadd(`viewed:${id}`, { [item]: now })
        .zremRangeByRank(`viewed:${id}`, 0, -26)
        .zincrby('viewed:', -1, item)
        .hget('login:', id)
      return (await client.exec(batch, true))?.[4]
    }
  },
})
