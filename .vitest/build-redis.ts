import { spawnSync } from 'node:child_process'
import { redisCli } from '../load/src/stack/redis.ts'

/** Builds the Redis and the tools that the tests need. Prints progress; quick when they are built. */
export default function setup(): void {
  const { status } = spawnSync(process.execPath, [redisCli, 'build', 'patched', 'tools'], {
    stdio: 'inherit',
  })
  if (status !== 0) throw new Error('the Redis that the tests need could not be built (see above)')
}
