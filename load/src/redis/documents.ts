import type { DocumentFigure } from './experiment.ts'

// What the documents print, for the experiments that repeat it. Their machines are not ours, and most
// of their servers are Redis 4.

const INFO_SOURCE = '张鹏义, Tencent Cloud: cases of high CPU and memory; Redis 4.0.10'

/** CPU of the server while one client sends INFO without pause. */
export const infoFigures: readonly DocumentFigure[] = [
  { what: 'INFO, no idle connections', value: 20, unit: '% of a core', source: INFO_SOURCE },
  { what: 'INFO, 9,999 idle connections', value: 80, unit: '% of a core', source: INFO_SOURCE },
]

const BENCHMARK_SOURCE = 'Redis pipeline以及批量优化: redis-benchmark -t get,set -n 100000'

/** redis-benchmark with its 50 clients, without and with -P 100. */
export const pipeliningFigures: readonly DocumentFigure[] = [
  { what: 'SET', value: 50_761, unit: 'commands/s', source: BENCHMARK_SOURCE },
  { what: 'SET -P 100', value: 483_092, unit: 'commands/s', source: BENCHMARK_SOURCE },
  { what: 'GET', value: 70_671, unit: 'commands/s', source: BENCHMARK_SOURCE },
  { what: 'GET -P 100', value: 826_446, unit: 'commands/s', source: BENCHMARK_SOURCE },
]
