import { setTimeout as delay } from 'node:timers/promises'
import { articleKeys, parseInfo } from '@onetrip/session-store'
import { socketIn } from '@onetrip/stack/places.ts'
import { endOf, type Program } from '@onetrip/stack/program.ts'
import { startRelay } from '@onetrip/stack/relay/process.ts'
import { startRedis } from '@onetrip/stack/start-redis.ts'
import { Redis } from 'ioredis'
import type { Reading } from './readings.ts'
import { durable, PAUSE_MS, type SoakRedis, type SoakScope } from './redis.ts'

/** Starts a Redis on a Unix socket, and a relay in front of it. @throws Problem. */
export async function startOneRedis(scope: SoakScope): Promise<SoakRedis> {
  const { directory, defer, signal } = scope
  const socket = await socketIn(directory)
  defer(socket.remove)
  const start = () => startRedis({ socket: socket.path, directory, config: durable })
  let redis = await start()
  let isExpected = false
  const watch = (program: Program) =>
    void program.exited.then(async () => isExpected || scope.fail(await endOf(program)))
  watch(redis)
  defer(async () => {
    isExpected = true
    redis.signal('SIGCONT') // a stopped process does not handle SIGTERM
    await redis.stop()
  })
  const relay = await startRelay({ to: socket.path, signal })
  defer(() => relay.stop())
  const client = new Redis(socket.path, { maxRetriesPerRequest: null })
  client.on('error', () => {}) // faults cause errors
  defer(() => client.disconnect())
  return {
    url: `redis://${relay.address}`,
    keys: articleKeys,
    client,
    read: async () => holdingsOf(await client.info()),
    faults: [
      {
        name: 'Redis killed and restarted',
        async run() {
          isExpected = true
          redis.signal('SIGKILL')
          await redis.exited
          redis = await start()
          watch(redis)
          isExpected = false
        },
      },
      {
        name: 'connections cut within a reply',
        async run() {
          const cut = relay.event('connection cut')
          await relay.command('cut replies 100')
          await cut
        },
      },
      {
        name: 'Redis paused for 3 s',
        async run() {
          redis.signal('SIGSTOP')
          await delay(PAUSE_MS)
          redis.signal('SIGCONT')
        },
      },
    ],
  }
}

/** The resources of a server, from its reply to INFO. */
export function holdingsOf(text: string): Required<Pick<Reading['values'], RedisResource>> {
  const info = parseInfo(text)
  return {
    'Redis memory': Number(info.get('used_memory')),
    'Redis RSS': Number(info.get('used_memory_rss')),
    'Redis connections': Number(info.get('connected_clients')),
  }
}

type RedisResource = 'Redis memory' | 'Redis RSS' | 'Redis connections'
