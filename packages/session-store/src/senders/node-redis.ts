import { publishRoundTrip } from '../diagnostics.ts'
import { notSent, type Outcome } from '../outcomes.ts'
import type { Command, Reply } from '../updates.ts'
import type { Sender } from './sender.ts'

/** What is needed of a client that `createClient` of the package `redis` returns. */
export interface NodeRedisClient {
  readonly isReady: boolean
  readonly options: { disableOfflineQueue?: boolean | undefined } | undefined
  sendCommand(args: string[], options: { timeout: number }): Promise<unknown>
  connect(): Promise<unknown>
  close(): Promise<void>
  destroy(): void
}

/**
 * Sends by a client of node-redis (the package `redis`, 5 or newer), which writes the commands of one
 * event-loop turn together. `batching(nodeRedisSender(client))` also merges those of several callers.
 * `store.close()` closes the client.
 *
 * @param client Connected, and made with `disableOfflineQueue: true`: commands that wait for a connection
 *   could be executed after their caller was told that they were not.
 * @param options `stalledAfterMs`: a connection that owes replies for so long is closed and opened anew.
 *   Default 10,000.
 * @throws TypeError for anything else.
 */
export function nodeRedisSender(client: NodeRedisClient, { stalledAfterMs = 10_000 } = {}): Sender {
  if (typeof client?.sendCommand !== 'function' || typeof client.isReady !== 'boolean') {
    throw new TypeError(
      'client must be a client of node-redis: createClient() of the package redis',
    )
  }
  if (client.options?.disableOfflineQueue !== true) {
    throw new TypeError(
      'this node-redis client could send a write late; it needs disableOfflineQueue: true',
    )
  }
  return {
    name: 'node-redis',
    async send({ commands }) {
      if (!client.isReady) throw notSent('the node-redis client is not connected')
      publishRoundTrip(commands.length)
      const stalled = setTimeout(() => reopen(client), stalledAfterMs)
      try {
        return await Promise.all(commands.map((command) => outcomeOf(client, command)))
      } finally {
        clearTimeout(stalled)
      }
    },
    state: () => ({ connections: 1, ready: client.isReady ? 1 : 0 }),
    close: () => client.close(),
  }
}

/** Its replies count as lost. Errors of connecting reach the client's own listeners. */
function reopen(client: NodeRedisClient): void {
  client.destroy()
  client.connect().catch(() => undefined)
}

/** Without the client's own limit of 5 s, which costs as much as the command: `stalledAfterMs` is ours. */
const NO_TIMEOUT = { timeout: 0 }

const outcomeOf = (client: NodeRedisClient, command: Command): Promise<Outcome> =>
  client.sendCommand(command.map(String), NO_TIMEOUT).then(
    (reply) => reply as Reply,
    (error) => (isErrorReply(error) ? refusal(error) : (error as Error)),
  )

/** All its errors are called `Error`; those of Redis are of a class of the client's own. */
function isErrorReply(error: unknown): error is Error {
  for (let type = error?.constructor; type; type = Object.getPrototypeOf(type)) {
    if (type.name === 'ErrorReply') return true
  }
  return false
}

function refusal(error: Error): Error {
  const renamed = new Error(error.message, { cause: error })
  renamed.name = 'ReplyError'
  return renamed
}
