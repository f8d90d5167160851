import type { DocumentFigure } from './experiment.ts'

// What the documents print, for the experiments that repeat it. Their machines are not ours, and most
// of their servers are Redis 4.

const BENCHMARK_SOURCE = 'Redis pipeline以及批量优化: redis-benchmark -t get,set -n 100000'

/** redis-benchmark with its 50 clients, without and with -P 100. */
export const pipeliningFigures: readonly DocumentFigure[] = [
  { what: 'SET', value: 50_761, unit: 'commands/s', source: BENCHMARK_SOURCE },
  { what: 'SET -P 100', value: 483_092, unit: 'commands/s', source: BENCHMARK_SOURCE },
  { what: 'GET', value: 70_671, unit: 'commands/s', source: BENCHMARK_SOURCE },
  { what: 'GET -P 100', value: 826_446, unit: 'commands/s', source: BENCHMARK_SOURCE },
]

const DIAGNOSIS_SOURCE = 'Redis性能优化方案, from Redis in Action: redis-benchmark -c 1 -q'

/** What a single client reaches. */
export const clientFigures: readonly DocumentFigure[] = [
  {
    what: 'redis-benchmark -c 1, PING',
    value: 34_843,
    unit: 'commands/s',
    source: DIAGNOSIS_SOURCE,
  },
  {
    what: 'redis-benchmark -c 1, SET',
    value: 32_468,
    unit: 'commands/s',
    source: DIAGNOSIS_SOURCE,
  },
  {
    what: 'redis-benchmark -c 1, GET',
    value: 33_113,
    unit: 'commands/s',
    source: DIAGNOSIS_SOURCE,
  },
]
