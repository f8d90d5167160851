import { buildRedis } from '../redis.ts'

/** Builds the Redis and the tools that the tests need. Prints progress; quick when they are built. */
export default async function setup(): Promise<void> {
  await buildRedis('patched')
  await buildRedis('tools')
}
