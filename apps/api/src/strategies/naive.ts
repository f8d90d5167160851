import { type ClusterAddress, shortCluster } from '@onetrip/cluster'
import { connectionChannel, type Sender } from '@onetrip/session-store'
import { Cluster, type Redis } from 'ioredis'
import { nameOf, notSent, shortConnection, subscribing, type Target } from './connections.ts'
import { oneByOne } from './sequential.ts'

/**
 * The pattern that articles on Redis warn of: every operation opens a connection, with ioredis's default handshake
 * (HELLO, client info, INFO as a ready check), sends one command per round trip, and closes the connection with QUIT.
 *
 * @param open Default: a connection with ioredis's handshake. It must not retry.
 */
export function naive(
  target: Target,
  open: (target: Target) => Redis | Cluster = shortConnection,
): Sender {
  const connections = new Set<Redis | Cluster>()
  // Before the deadline of the store, because errors of the connection are more precise.
  const deadlineMs = Math.ceil(0.9 * target.deadlineMs)

  return {
    name: 'naive',
    async send({ commands }) {
      const redis = open({ ...target, deadlineMs })
      const timer = setTimeout(close, deadlineMs, redis)
      connections.add(redis)
      redis.on('connect', () => connectionChannel.publish({}))
      redis.once('end', () => {
        clearTimeout(timer)
        connections.delete(redis)
      })
      try {
        await connect(redis)
        const outcomes = await oneByOne(redis, commands)
        // After QUIT, Redis closes first. The side that closes first keeps the port in TIME_WAIT.
        await quit(redis).catch(() => close(redis))
        return outcomes
      } catch (error) {
        close(redis)
        throw error
      }
    },
    connections: () => ({ connections: 0, ready: 0, server: nameOf(target) }),
    subscribe: subscribing(target),
    async close() {
      connections.forEach(close)
    },
  }
}

/**
 * The same on a cluster: every operation first asks a node for the table of slots, then connects to each node that it
 * needs. It cannot report the end of sessions.
 */
export function naiveOnCluster(address: ClusterAddress, deadlineMs: number): Sender {
  const open = (target: Target) => shortCluster(address, target.deadlineMs)
  const { name, send, close } = naive({ redis: {}, poolSize: 1, deadlineMs }, open)
  return { name, send, close }
}

/** @throws StoreError `ONETRIP_NOT_SENT` if the handshake fails. */
async function connect(redis: Redis | Cluster): Promise<void> {
  let reason: Error | undefined
  redis.on('error', (error: Error) => {
    reason = error
  })
  await redis.connect().catch((error: Error) => {
    reason ??= error
  })
  // ioredis uses database 0 if Redis refuses the database of the URL, and only emits the error.
  if (reason) throw notSent('no connection could be opened', reason)
}

/** Closes an open connection. After a failed attempt to connect, `disconnect()` would start a timer of 2 s. */
function close(redis: Redis | Cluster): void {
  if (redis.status !== 'end') redis.disconnect()
}

async function quit(redis: Redis | Cluster): Promise<void> {
  if (!(redis instanceof Cluster)) return void (await redis.quit())
  const open = redis.nodes().filter(({ status }) => status === 'ready')
  await Promise.all(open.map((node) => node.quit()))
  redis.disconnect()
}
