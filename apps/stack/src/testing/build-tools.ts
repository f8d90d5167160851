import { buildRedis } from '../start-redis.ts'

/** Builds redis-benchmark and redis-cli, if necessary. Prints the progress. */
export default async function setup(): Promise<void> {
  await buildRedis('tools')
}
