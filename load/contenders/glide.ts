import { parseRedisUrl, publishRoundTrip, type Reply } from '@onetrip/session-store'
import { hideCredentials } from '@onetrip/stack/address.ts'
import { Batch, GlideClient, RequestError } from '@valkey/valkey-glide'
import { words } from './support/contender.ts'
import { serve } from './support/serve.ts'

// valkey-glide with a non-atomic batch for each request.

/** Renames an error reply, because the store recognizes such errors by their name. */
function refusal(error: Error): Error {
  const renamed = new Error(error.message, { cause: error })
  renamed.name = 'ReplyError'
  return renamed
}

/** Converts a reply to the form in the protocol. valkey-glide converts members with scores to records. */
function plain(reply: unknown): Reply {
  if (Array.isArray(reply)) return reply.map(plain)
  if (typeof reply === 'object' && reply !== null && 'key' in reply && 'value' in reply) {
    return [String(reply.key), Number(reply.value)]
  }
  return reply as Reply
}

await serve('glide', async ({ redisUrl, deadlineMs }) => {
  const { host, port, password, username, db } = parseRedisUrl(redisUrl).options
  if (!host) throw new Error(`valkey-glide supports TCP only, not ${hideCredentials(redisUrl)}`)
  const client = await GlideClient.createClient({
    addresses: [{ host, ...(port && { port }) }],
    requestTimeout: deadlineMs,
    ...(db && { databaseId: db }),
    ...(password && { credentials: { password, ...(username && { username }) } }),
  })
  return {
    async send({ commands }) {
      const batch = new Batch(false)
      for (const command of commands) batch.customCommand(words(command))
      publishRoundTrip(commands.length)
      const replies = await client.exec(batch, false)
      return (replies ?? []).map((reply) =>
        reply instanceof RequestError ? refusal(reply) : plain(reply),
      )
    },
    close: async () => client.close(),
  }
})
