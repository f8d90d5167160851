import type { Sender } from '@onetrip/session-store'
import type { Target } from './connections.ts'
import { naive } from './naive.ts'
import { pipeline } from './pipeline.ts'
import { sequential } from './sequential.ts'

export { openPool, shortConnection, type Target } from './connections.ts'
export { naive, naiveOnCluster } from './naive.ts'
export { oneByOne } from './sequential.ts'

/**
 * Ways of sending, from the worst to the best. All send the same commands for an operation; they differ in connections
 * and round trips. `batch` is the store's own.
 */
export const strategyNames = ['naive', 'sequential', 'pipeline', 'batch'] as const
export type StrategyName = (typeof strategyNames)[number]

const strategies = { naive, sequential, pipeline }

/** The options of a store that sends to one server with a strategy. */
export function sendingBy(
  strategy: StrategyName,
  { redis, poolSize, deadlineMs }: Target,
): { sender: Sender } | Omit<Target, 'deadlineMs'> {
  if (strategy === 'batch') return { redis, poolSize }
  return { sender: strategies[strategy]({ redis, poolSize, deadlineMs }) }
}
