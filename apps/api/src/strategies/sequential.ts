import { type Command, type Outcome, roundTripChannel, type Sender } from '@onetrip/session-store'
import type { Cluster, Redis } from 'ioredis'
import { notSent, openPool, type Target } from './connections.ts'

/**
 * One step better than `naive`: connections stay open, and all callers share them. Each command still waits for the
 * reply to the one before, as code does that awaits every call of its Redis client.
 */
export function sequential(target: Target): Sender {
  const pool = openPool(target)
  return {
    name: 'sequential',
    send: async ({ commands }) => await oneByOne(pool.next(), commands),
    connections: pool.connections,
    subscribe: pool.subscribe,
    close: pool.close,
  }
}

/** Sends each command in a round trip of its own. Stops after a lost reply, but not after an error of Redis. */
export async function oneByOne(
  redis: Redis | Cluster,
  commands: readonly Command[],
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const [name, ...args] of commands) {
    roundTripChannel.publish({ commands: 1 })
    try {
      outcomes.push((await redis.call(name, ...args)) as Outcome)
    } catch (error) {
      outcomes.push(error as Error)
      if ((error as Error).name === 'ReplyError') continue // a pipeline goes on, too
      if (outcomes.length < commands.length) outcomes.push(notSent('an earlier reply was lost'))
      break
    }
  }
  return outcomes
}
