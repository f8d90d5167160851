import { spawnSync } from 'node:child_process'
import { redisCli } from '../redis.ts'

/** Builds, once, the Redis that the tests talk to. Prints its progress; quick when it is built. */
export default function setup(): void {
  const { status } = spawnSync(process.execPath, [redisCli, 'build', 'patched'], {
    stdio: 'inherit',
  })
  if (status !== 0) throw new Error('the Redis that the tests need could not be built (see above)')
}
