import type { Strategy, StrategyName, StrategyOptions } from '../strategy.ts'
import { batch } from './batch.ts'
import { naive, naiveLean } from './naive.ts'
import { pipeline, script, sequential, transaction } from './pooled.ts'

const strategies: Record<StrategyName, (options: StrategyOptions) => Strategy> = {
  naive,
  'naive-lean': naiveLean,
  sequential,
  pipeline,
  transaction,
  batch,
  script,
}

/** @throws TypeError when the strategy cannot work with the options. */
export function strategyFor(
  choice: StrategyName | Strategy = 'batch',
  options: StrategyOptions,
): Strategy {
  if (typeof choice === 'string') return strategies[choice](options)
  if (options.url === undefined && options.client === undefined) return choice
  throw new TypeError('a strategy of your own has its own client: give neither url nor client')
}
