import { buildRedis } from '../redis.ts'

/** Builds, once, the Redis that the tests use. Prints its progress; quick when it is built. */
export default function setup(): Promise<void> {
  return buildRedis('patched')
}
