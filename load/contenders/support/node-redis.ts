import { type Command, type Outcome, publishRoundTrip } from '@onetrip/session-store'
import { createClient } from 'redis'
import { type ContenderOptions, words } from './contender.ts'

/** Connects a node-redis client that is configured as in its README. */
export async function nodeRedis({ redisUrl }: Pick<ContenderOptions, 'redisUrl'>) {
  const client = createClient({ url: redisUrl, disableOfflineQueue: true })
  client.on('error', (error: Error) => void process.stderr.write(`node-redis: ${error.message}\n`))
  return await client.connect()
}

type Client = Awaited<ReturnType<typeof nodeRedis>>

/**
 * Sends all commands in one pipeline, as in the documentation of node-redis. If Redis refuses a command, node-redis
 * rejects with the first error without the index of the command, so the outcome of all commands is unknown.
 */
export async function sendPipeline(
  client: Client,
  commands: readonly Command[],
): Promise<Outcome[]> {
  const pipeline = client.multi()
  for (const command of commands) pipeline.sendCommand(words(command))
  publishRoundTrip(commands.length)
  return (await pipeline.execAsPipeline()) as unknown as Outcome[]
}
