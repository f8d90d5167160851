import { Redis } from 'ioredis'
import type { Context } from '../../experiment/experiment.ts'
import { matches } from '../../experiment/rows.ts'
import type { Case } from '../../experiment/shape.ts'
import { holdConnections } from './generator/load.ts'
import type { RedisServer, RedisServerOptions } from './server.ts'

/**
 * Starts a Redis for each of these cases. The result finds the one for a case, which may have more factors,
 * and lets only that one run (SIGSTOP for the others): a Redis with many idle clients looks at each of them
 * every second, which would cost the others CPU.
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
    context.defer(() => send('SIGCONT', server)) // to end, it has to run
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
    // It has ended, which the context reports.
  }
}

interface FilledRedisOptions extends RedisServerOptions {
  idle?: number
  busy: number
}

/**
 * Starts a Redis that has a key, as `fillKeys` names it, with a value of 3 bytes, as redis-benchmark's, and idle
 * connections (0 by default), and room for `busy` others at the same time.
 */
export async function startFilledRedis(
  context: Context,
  { build, config, idle = 0, busy }: FilledRedisOptions,
): Promise<RedisServer> {
  // Twice the busy ones: a client connects again before Redis has noticed that it closed.
  const maxclients = String(Math.max(10_000, idle + 2 * busy + 100))
  const server = await context.startRedis({ build, config: { maxclients, ...config } })
  await fillKeys(server.socket, 1, 3)
  if (idle > 0) {
    const holder = await holdConnections(server.socket, idle, context.signal)
    context.defer(() => holder.stop())
  }
  return server
}

/** The key that the generator's `{key}` stands for. */
export const keyName = (index: number) => `key:${String(index).padStart(12, '0')}`

const FILL = `for i = 0, ARGV[1] - 1 do redis.call('SET', string.format('key:%012d', i), ARGV[2]) end`

/** Gives a server `count` keys, as the generator's `{key}` names them, with values of `bytes` bytes. */
export async function fillKeys(socket: string, count: number, bytes: number): Promise<void> {
  const client = new Redis(socket)
  await client.eval(FILL, 0, count, 'x'.repeat(bytes)).finally(() => client.disconnect())
}
