import { errorMonitor } from 'node:events'
import {
  type Command,
  type Outcome,
  publishRoundTrip,
  type Reply,
  type Sender,
  StoreError,
} from '@onetrip/session-store'

/** The part of node-redis's client (`createClient` of the package `redis`) that the sender uses. */
export interface NodeRedisClient {
  readonly isReady: boolean
  /** Whether the client is connected or connecting: false after `close` and `destroy`. */
  readonly isOpen: boolean
  readonly options: { disableOfflineQueue?: boolean | undefined; socket?: object } | undefined
  sendCommand(args: string[], options: { timeout: number }): Promise<unknown>
  connect(): Promise<unknown>
  close(): Promise<void>
  destroy(): void
  on(event: string | symbol, listener: () => void): unknown
  /** For `watchSession`. */
  duplicate?(overrides: { socket: { reconnectStrategy: false } }): NodeRedisSubscriber
}

interface NodeRedisSubscriber extends Pick<NodeRedisClient, 'connect' | 'destroy' | 'on'> {
  subscribe(channels: string[], onMessage: (message: string) => void): Promise<unknown>
}

const MAX_TIMEOUT_MS = 86_400_000

/**
 * Creates a sender for a client of node-redis (the package `redis`, 5 or newer), which writes the commands of
 * one event-loop turn together. `store.close()` closes the client.
 *
 * @param client A connected client, created with `disableOfflineQueue: true`: otherwise a queued command could
 *   be executed after its caller got an error.
 * @param options `stalledAfterMs`: a connection that has not replied for so long is closed and reopened, also during
 *   its handshake. Default 10,000.
 * @throws TypeError for any other client, and if an option does not exist or is out of range.
 */
export function nodeRedisSender(
  client: NodeRedisClient,
  options: { stalledAfterMs?: number } = {},
): Sender {
  if (typeof client?.sendCommand !== 'function' || typeof client.isReady !== 'boolean') {
    throw new TypeError(
      'client must be a client of node-redis: createClient() of the package redis',
    )
  }
  if (client.options?.disableOfflineQueue !== true) {
    throw new TypeError(
      'this node-redis client could send a write late; set disableOfflineQueue: true',
    )
  }
  const { stalledAfterMs = 10_000, ...others } = options
  for (const name of Object.keys(others)) {
    throw new TypeError(`nodeRedisSender has no option ${name}: its option is stalledAfterMs`)
  }
  if (!(stalledAfterMs >= 1 && stalledAfterMs <= MAX_TIMEOUT_MS)) {
    throw new TypeError(`stalledAfterMs must be a number from 1 to ${MAX_TIMEOUT_MS}`)
  }
  const handshakes = limitHandshakes(client, stalledAfterMs)
  let sending = 0
  return {
    name: 'node-redis',
    async send({ commands }) {
      if (!client.isReady) {
        throw new StoreError(
          'ONETRIP_NOT_SENT',
          'not sent to Redis: the node-redis client is not connected',
          { cause: handshakes.lastError },
        )
      }
      publishRoundTrip(commands.length)
      sending++
      const stalled = setTimeout(() => reopen(client), stalledAfterMs)
      try {
        return await Promise.all(commands.map((command) => outcomeOf(client, command)))
      } finally {
        clearTimeout(stalled)
        sending--
      }
    },
    subscribe(channels, onMessage) {
      if (!client.duplicate) throw new TypeError('this node-redis client cannot be duplicated')
      const { socket } = client.options ?? {}
      const own = client.duplicate({ socket: { ...socket, reconnectStrategy: false } })
      const { promise: lost, resolve: onLost } = Promise.withResolvers<void>()
      own.on('error', onLost)
      own.on('end', onLost)
      return {
        ready: own.connect().then(() => own.subscribe([...channels], onMessage)),
        lost,
        close: () => destroy(own),
      }
    },
    connections: () => ({ connections: 1, ready: client.isReady ? 1 : 0 }),
    async close() {
      handshakes.stop()
      // close() would wait for replies, and in version 5 destroy() does nothing after it.
      if (client.isReady && sending === 0) await client.close()
      else destroy(client)
    },
  }
}

/**
 * Closes a connection that does not reply, and opens a new one unless the client has been closed. Outstanding replies
 * count as lost. Listeners of the client get errors of connecting.
 */
function reopen(client: NodeRedisClient): void {
  const { isOpen } = client
  destroy(client)
  if (isOpen) connect(client)
}

function destroy(client: Pick<NodeRedisClient, 'destroy'>): void {
  try {
    client.destroy()
  } catch {
    // node-redis 5 throws if the client has been closed
  }
}

const connect = (client: NodeRedisClient) => void client.connect().catch(() => undefined)

/**
 * Until its own attempt to connect has ended, a client must not begin another one: the replies would be mixed up.
 * After `destroy`, some versions of node-redis first finish their pause between two attempts, which is at most 2.2 s by
 * default.
 */
const PAUSE_MS = 3_000

/** Closes a connection that gets no reply during its handshake, and opens a new one: node-redis would wait forever. */
function limitHandshakes(client: NodeRedisClient, stalledAfterMs: number) {
  let lastError: Error | undefined
  let handshake: NodeJS.Timeout | undefined
  let pause: NodeJS.Timeout | undefined
  let stopped = false
  const giveUp = () => {
    lastError = new Error('no reply during the handshake')
    const { isOpen } = client
    destroy(client)
    if (isOpen) pause = setTimeout(connect, PAUSE_MS, client)
  }
  const end = () => clearTimeout(handshake)
  client.on('connect', () => {
    end()
    if (stopped && !client.isOpen)
      destroy(client) // closed while it was connecting
    else if (!stopped) handshake = setTimeout(giveUp, stalledAfterMs)
  })
  client.on('ready', () => {
    end()
    lastError = undefined
  })
  client.on(errorMonitor, end)
  client.on('end', end)
  return {
    get lastError() {
      return lastError
    },
    stop() {
      stopped = true
      end()
      clearTimeout(pause)
    },
  }
}

/** Turns off the client's timeout of 5 s, which takes as much CPU as the command; `stalledAfterMs` replaces it. */
const NO_TIMEOUT = { timeout: 0 }

const outcomeOf = (client: NodeRedisClient, command: Command): Promise<Outcome> =>
  client.sendCommand(command.map(String), NO_TIMEOUT).then(
    (reply) => reply as Reply,
    (error) => (isErrorReply(error) ? refusal(error) : (error as Error)),
  )

/** Whether Redis replied with an error. The client's errors all have the name `Error`, so this checks the class. */
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
