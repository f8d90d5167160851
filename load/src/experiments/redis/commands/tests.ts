import { measureBenchmark } from '../../../drivers/redis/cost.ts'
import type { RedisServer } from '../../../drivers/redis/server.ts'
import type { Measured } from '../../../rounds/shape.ts'

/** The default tests of redis-benchmark: arguments, and commands per second in the articles. */
export const tests: Readonly<Record<string, readonly [args: string, inArticles?: number]>> = {
  'PING (inline)': ['-t ping_inline', 34_246.57],
  PING: ['-t ping_mbulk', 34_843.21],
  SET: ['-t set', 32_467.53],
  GET: ['-t get', 33_112.59],
  INCR: ['-t incr', 32_679.74],
  LPUSH: ['-t lpush', 33_333.33],
  RPUSH: ['-t rpush'],
  LPOP: ['-t lpop', 33_670.04],
  RPOP: ['-t rpop'],
  SADD: ['-t sadd', 33_222.59],
  HSET: ['-t hset'],
  SPOP: ['-t spop', 34_482.76],
  ZADD: ['-t zadd'],
  ZPOPMIN: ['-t zpopmin'],
  'LRANGE of 100': ['LRANGE mylist 0 99', 22_988.51],
  'LRANGE of 300': ['LRANGE mylist 0 299', 13_888.89],
  'LRANGE of 500': ['LRANGE mylist 0 499'],
  'LRANGE of 600': ['LRANGE mylist 0 599', 9_041.59],
  'MSET of 10': ['-t mset', 24_213.08],
  XADD: ['-t xadd'],
}

/** These tests need a list. It is filled before the measurement; `-t lrange_100` would include that. */
const READS_LIST = /^([LR]POP|LRANGE)/

/** Runs a test with one client. @param more further options: ` -k 0` for a new connection for each command. */
export async function benchmark(
  server: RedisServer,
  name: string,
  requests: number,
  signal: AbortSignal,
  more = '',
): Promise<Measured> {
  const run = (test = '') =>
    measureBenchmark(server, `-c 1 -n ${requests}${more} ${test}`, requests, signal)
  if (READS_LIST.test(name)) await run('-t lpush')
  return await run(tests[name]?.[0])
}
