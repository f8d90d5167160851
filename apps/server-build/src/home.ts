import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ServerBuild } from './builds.ts'

const repository = fileURLToPath(new URL('../../..', import.meta.url))

/** The folders for everything that belongs to this machine and not to the repository. */
export interface Home {
  readonly redis: string
  /** One folder per source: archive, Debian's patches, `source.json`. */
  readonly sources: string
  /** File with the name of the current source. */
  readonly currentSource: string
  /** One folder per finished build, `<build>-<key>`; unfinished ones begin with `.tmp-`. */
  readonly builds: string
  /** The full output of compilations. */
  readonly logs: string
}

/** `$ONETRIP_HOME`, or `.onetrip` in the repository. */
export function homeOf(env: NodeJS.ProcessEnv): Home {
  const redis = join(resolve(env.ONETRIP_HOME || join(repository, '.onetrip')), 'redis')
  return {
    redis,
    sources: join(redis, 'sources'),
    currentSource: join(redis, 'current-source.json'),
    builds: join(redis, 'builds'),
    logs: join(redis, 'logs'),
  }
}

/** The default data directory of a build. */
export function dataDirectory(home: Home, build: ServerBuild): string {
  return join(home.redis, 'data', build)
}
