import { publishRoundTrip } from '@onetrip/session-store'
import type { nodeRedis } from './node-redis.ts'

// The methods that contenders use. Each sends a single command.
const METHODS = ['get', 'set', 'del', 'expire', 'zIncrBy', 'zRangeWithScores'] as const

type Method = (...args: unknown[]) => unknown

/** Makes the client publish a round trip for each command, like our store. */
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
