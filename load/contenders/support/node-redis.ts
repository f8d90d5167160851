import type { Command, Outcome } from '@onetrip/session-store'
import { createClient } from 'redis'
import { publishRoundTrip } from '../../../packages/session-store/src/diagnostics.ts'
import { type ContenderOptions, words } from './contender.ts'

/** A node-redis client as its README sets one up, connected. */
export async function nodeRedis({ redisUrl }: Pick<ContenderOptions, 'redisUrl'>) {
  const client = createClient({ url: redisUrl, disableOfflineQueue: true })
  client.on('error', (error: Error) => void process.stderr.write(`node-redis: ${error.message}\n`))
  return await client.connect()
}

type Client = Awaited<ReturnType<typeof nodeRedis>>

/**
 * All commands as one pipeline, as its documentation has it. Of a pipeline in which Redis refuses a
 * command, node-redis rejects with the first error and does not tell which command it was: what became
 * of the commands is unknown.
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
