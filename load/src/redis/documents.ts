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

const DIAGNOSIS_SOURCE = 'Redis in Action, 4.6: redis-benchmark -c 1 -q, and a Python client'

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

const APSARA_SOURCE =
  'Redis短连接性能优化 (ApsaraDB): redis-benchmark -k 0 -t get -n 100000 -c 8000'
const TENCENT_SOURCE =
  '张鹏义, Tencent Cloud: redis-benchmark -t ping -c 10000 -n 500000; Redis 4.0.10'

/** Short connections before and after the search of the client list was made O(1). */
export const shortConnectionFigures: readonly DocumentFigure[] = [
  { what: 'GET, O(N) search', value: 10_065, unit: 'requests/s', source: APSARA_SOURCE },
  { what: 'GET, O(1), +37 %', value: 13_824, unit: 'requests/s', source: APSARA_SOURCE },
  { what: 'PING, -k 1 (long)', value: 93_580, unit: 'requests/s', source: TENCENT_SOURCE },
  { what: 'PING, -k 0, O(N) search', value: 16_472, unit: 'requests/s', source: TENCENT_SOURCE },
  { what: 'PING, -k 0, O(1), +30 %', value: 21_455, unit: 'requests/s', source: TENCENT_SOURCE },
]
