import type { DocumentFigure } from './experiment.ts'

// What the documents print, for the experiments that repeat it. Their machines are not ours, and most
// of their servers are Redis 4.

const INFO_SOURCE = '张鹏义, Tencent Cloud: cases of high CPU and memory; Redis 4.0.10'

/** CPU of the server while one client sends INFO without pause. */
export const infoFigures: readonly DocumentFigure[] = [
  { what: 'INFO, no idle connections', value: 20, unit: '% of a core', source: INFO_SOURCE },
  { what: 'INFO, 9,999 idle connections', value: 80, unit: '% of a core', source: INFO_SOURCE },
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

const THREADS_SOURCE = 'Redis双核架构实测QPS: Redis 6.2.6, 24 cores, memtier, values of 100 bytes'

/** One thread and four, and the rate over all commands by the number of threads. */
export const ioThreadsFigures: readonly DocumentFigure[] = [
  { what: 'SET, 1 thread', value: 85_200, unit: 'commands/s', source: THREADS_SOURCE },
  { what: 'SET, 4 threads', value: 210_300, unit: 'commands/s', source: THREADS_SOURCE },
  { what: 'GET, 1 thread', value: 87_500, unit: 'commands/s', source: THREADS_SOURCE },
  { what: 'GET, 4 threads', value: 215_800, unit: 'commands/s', source: THREADS_SOURCE },
  { what: 'MGET of 10, 1 thread', value: 42_100, unit: 'commands/s', source: THREADS_SOURCE },
  { what: 'MGET of 10, 4 threads', value: 68_700, unit: 'commands/s', source: THREADS_SOURCE },
  { what: 'LPUSH, 1 thread', value: 78_900, unit: 'commands/s', source: THREADS_SOURCE },
  { what: 'LPUSH, 4 threads', value: 195_400, unit: 'commands/s', source: THREADS_SOURCE },
  { what: 'all, 1 thread', value: 86_200, unit: 'commands/s', source: THREADS_SOURCE },
  { what: 'all, 2 threads', value: 165_400, unit: 'commands/s', source: THREADS_SOURCE },
  { what: 'all, 4 threads', value: 210_300, unit: 'commands/s', source: THREADS_SOURCE },
  { what: 'all, 8 threads', value: 208_700, unit: 'commands/s', source: THREADS_SOURCE },
  { what: 'below 1 ms, 1 thread', value: 89, unit: '%', source: THREADS_SOURCE },
  { what: 'below 1 ms, 4 threads', value: 97, unit: '%', source: THREADS_SOURCE },
  { what: 'over 2 ms, 1 thread', value: 3, unit: '%', source: THREADS_SOURCE },
  { what: 'over 2 ms, 4 threads', value: 1, unit: '%', source: THREADS_SOURCE },
]
