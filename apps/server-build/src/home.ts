import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ServerBuild } from './builds.ts'

const repository = fileURLToPath(new URL('../../..', import.meta.url))

/** The folders for everything that belongs to this machine and not to the repository. */
export interface Home {
  readonly redis: string
  /** The source of all builds: archive, Debian's patches, `source.json`. */
  readonly source: string
  /** One folder per finished build, `<build>-<key>`. */
  readonly builds: string
  /** The full output of compilations and of upstream's tests. */
  readonly logs: string
  /** Everything unfinished. Belongs to the process that holds the lock, which removes it. */
  readonly temporary: string
}

/** `$ONETRIP_HOME`, or `.onetrip` in the repository. */
export function homeOf(env: NodeJS.ProcessEnv): Home {
  const redis = join(resolve(env.ONETRIP_HOME || join(repository, '.onetrip')), 'redis')
  return {
    redis,
    source: join(redis, 'source'),
    builds: join(redis, 'builds'),
    logs: join(redis, 'logs'),
    temporary: join(redis, 'tmp'),
  }
}

/** The default data directory of a build. */
export function dataDirectory(home: Home, build: ServerBuild): string {
  return join(home.redis, 'data', build)
}
