import { buildRedis } from '../start-redis.ts'

/** Builds the Redis that the tests need, if necessary. Prints the progress. */
export default async function setup(): Promise<void> {
  await buildRedis('patched')
}
