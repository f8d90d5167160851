import { Redis } from 'ioredis'
import type { Context } from '../../experiments/experiment.ts'
import { matches } from '../../rounds/rows.ts'
import type { Case } from '../../rounds/shape.ts'
import { holdConnections } from './generator/load.ts'
import type { RedisServer, RedisServerOptions } from './server.ts'

/**
 * Starts a Redis for each of these cases. The returned function finds the server for a case (which may have further
 * factors) and stops all other servers with SIGSTOP: a Redis with many idle clients checks each of them every second
 * and would use CPU time.
 */
export async function redisForEach<One extends Case>(
  context: Context,
  cases: readonly One[],
  start: (one: One) => Promise<RedisServer>,
): Promise<(one: Case) => RedisServer> {
  const servers: { of: One; server: RedisServer }[] = []
  let running: RedisServer | undefined
  for (const of of cases) {
    const server = await start(of)
    servers.push({ of, server })
    send('SIGSTOP', server)
    context.defer(() => send('SIGCONT', server)) // a stopped process does not handle SIGTERM
  }
  return (one) => {
    const found = servers.find(({ of }) => matches(one, of))
    if (!found) throw new RangeError(`no Redis for ${JSON.stringify(one)}`)
    if (running) send('SIGSTOP', running)
    running = found.server
    send('SIGCONT', running)
    return running
  }
}

function send(signal: 'SIGSTOP' | 'SIGCONT', { pid }: RedisServer): void {
  try {
    process.kill(pid, signal)
  } catch {
    // The server has ended. The context reports that.
  }
}

interface FilledRedisOptions extends RedisServerOptions {
  idle?: number
  busy: number
}

/**
 * Starts a Redis with one key (see `fillKeys`), whose value has 3 bytes like those of redis-benchmark.
 *
 * @param options.idle idle connections to open. Default: 0.
 * @param options.busy further concurrent connections that Redis must accept.
 */
export async function startFilledRedis(
  context: Context,
  { build, config, idle = 0, busy }: FilledRedisOptions,
): Promise<RedisServer> {
  // Twice the number, because a client connects again before Redis has noticed that it closed.
  const maxclients = String(Math.max(10_000, idle + 2 * busy + 100))
  const server = await context.startRedis({ build, config: { maxclients, ...config } })
  await fillKeys(server.socket, 1, 3)
  if (idle > 0) {
    const holder = await holdConnections({ socket: server.socket }, idle, context.signal)
    context.defer(() => holder.stop())
  }
  return server
}

/** The name of a key for the generator's `{key}`. */
export const keyName = (index: number) => `key:${String(index).padStart(12, '0')}`

const FILL = `for i = 0, ARGV[1] - 1 do redis.call('SET', string.format('key:%012d', i), ARGV[2]) end`

/** Writes `count` keys for the generator's `{key}`, with values of `bytes` bytes. */
export async function fillKeys(socket: string, count: number, bytes: number): Promise<void> {
  const client = new Redis(socket)
  await client.eval(FILL, 0, count, 'x'.repeat(bytes)).finally(() => client.disconnect())
}
