import { Redis } from 'ioredis'
import { cpuDuring, microsPer } from '../../../drivers/redis/cost.ts'
import type { RedisServer } from '../../../drivers/redis/server.ts'
import type { Case, Measured } from '../../../rounds/shape.ts'
import { benchmark } from './tests.ts'

/** What redis-benchmark sends in the test of that name. */
const commands = {
  PING: ['PING'],
  SET: ['SET', 'key:__rand_int__', 'xxx'],
  GET: ['GET', 'key:__rand_int__'],
  LPUSH: ['LPUSH', 'mylist', 'xxx'],
} as const

/** SET comes before GET, so that in the first round GET finds the key. */
export const commandsOfClients = Object.keys(commands)

interface Client {
  send(command: readonly string[]): Promise<unknown>
  close(): void
}

/** Open a connection with the defaults of the client, except that it is not opened again after an error. */
const open: Readonly<Record<string, (port: number) => Promise<Client>>> = {
  async ioredis(port) {
    const redis = new Redis({ port, retryStrategy: null, lazyConnect: true })
    redis.on('error', () => {}) // connect() and call() reject, too
    await redis.connect()
    return {
      send: ([name = '', ...args]) => redis.call(name, ...args),
      close: () => redis.disconnect(),
    }
  },
  async 'node-redis'(port) {
    const { createClient } = await import('redis') // not in the image of load/Dockerfile
    const redis = createClient({ socket: { host: '127.0.0.1', port, reconnectStrategy: false } })
    redis.on('error', () => {}) // connect() and sendCommand() reject with it
    await redis.connect()
    return { send: (command) => redis.sendCommand(command), close: () => redis.destroy() }
  },
}

const BENCHMARK = 'redis-benchmark'
export const clients = [BENCHMARK, ...Object.keys(open)]

const KEPT = 'kept'
export const NEW = 'new for each command'
export const connections = [KEPT, NEW]

/** `redis-benchmark -c 1` */
export const REFERENCE = { client: BENCHMARK, connection: KEPT }

/** The warm-up of the compiler, as a share of the measured time. */
const WARM_UP = 0.3

/** A client sends a command, waits for the reply, and sends it again. */
export async function callWith(
  server: RedisServer,
  { client, connection, command }: Case,
  { seconds, requests, signal }: { seconds: number; requests: number; signal: AbortSignal },
): Promise<Measured> {
  const isNew = connection === NEW
  const openOne = open[String(client)]
  if (!openOne)
    return await benchmark(server, String(command), requests, signal, isNew ? ' -k 0' : '')
  const words = commands[command as keyof typeof commands]
  const kept = isNew ? undefined : await openOne(server.port)
  const call = async () => {
    const one = kept ?? (await openOne(server.port))
    await one.send(words).finally(() => isNew && one.close())
  }
  const callFor = async (duration: number) => {
    const until = performance.now() + duration * 1_000
    let calls = 0
    for (; performance.now() < until; calls++) {
      signal.throwIfAborted()
      await call()
    }
    return calls
  }
  try {
    await callFor(seconds * WARM_UP)
    const { result: calls, cpu } = await cpuDuring(server, () => callFor(seconds))
    return { values: { perSecond: calls / cpu.seconds, ...microsPer(cpu, calls) } }
  } finally {
    kept?.close()
  }
}
