import { checkFunctions, MAX_TIMEOUT_MS } from '../input.ts'
import { checkRange } from '../range.ts'
import type { Strategy, StrategyName, StrategyOptions } from '../strategy.ts'
import { strategyNames } from '../strategy.ts'
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

/** @throws TypeError when an option is out of its range, or the strategy cannot work with the options. */
export function strategyFor(
  choice: StrategyName | Strategy = 'batch',
  options: StrategyOptions,
): Strategy {
  const { deadlineMs = 2_000, poolSize = 1, maxInFlight = 1_000 } = options
  checkRange('deadlineMs', deadlineMs, { least: 1, most: MAX_TIMEOUT_MS })
  checkRange('poolSize', poolSize, { least: 1, most: 1_000, whole: true })
  checkRange('maxInFlight', maxInFlight, { least: 1, whole: true })
  if (typeof choice === 'string') {
    if (Object.hasOwn(strategies, choice)) return strategies[choice](options)
    throw new TypeError(`strategy must be one of ${strategyNames.join(', ')}, or an object`)
  }
  checkFunctions('a strategy of your own', choice, ['run', 'scan', 'ready', 'close'])
  if (options.url === undefined && options.client === undefined) return choice
  throw new TypeError('a strategy of your own has its own client: give neither url nor client')
}
