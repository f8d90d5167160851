import { publishRoundTrip } from '../../../packages/session-store/src/diagnostics.ts'
import type { nodeRedis } from './node-redis.ts'

// Methods for single commands, each of which its caller waits for.
const METHODS = ['get', 'set', 'del', 'expire', 'zIncrBy', 'zRangeWithScores'] as const

type Method = (...args: unknown[]) => unknown

/** Lets the client publish a round trip for each command, as our store does. */
export function countRoundTrips(client: Awaited<ReturnType<typeof nodeRedis>>): void {
  const methods = client as unknown as Record<(typeof METHODS)[number], Method>
  for (const name of METHODS) {
    const method = methods[name].bind(client)
    methods[name] = (...args) => {
      publishRoundTrip(1)
      return method(...args)
    }
  }
}
