import { rm } from 'node:fs/promises'
import { RedisBuildError } from '../errors.ts'
import { sha256OfFile } from '../files.ts'
import type { Home } from '../home.ts'
import type { Job } from '../job.ts'
import { newestRelease, releases, releaseUrl } from '../releases.ts'
import { existingFile, fromDebian, fromRelease, fromUser, isAddress, type Route } from './routes.ts'
import {
  currentSource,
  type Source,
  type StoredSource,
  storedSources,
  storeSource,
  unfinishedSource,
  useSource,
} from './source.ts'

/** The source for a build. Default: the source used last, otherwise the newest available one. */
export interface Selection {
  /** A file or a URL. */
  source?: string | undefined
  /** The SHA-256 of `source`, in lower case. Default: `source` must be a known release. */
  sha256?: string
  /** Only this suite of Debian. */
  suite?: string
  /** Look for a newer source, even if one is cached. */
  refresh?: boolean
}

/** The selection in the environment, for commands without options for it. */
export function selectionFrom(env: NodeJS.ProcessEnv): Selection {
  return env.REDIS_SOURCE ? { source: env.REDIS_SOURCE } : {}
}

/** The selected source if it is in the cache. Does not use the network. */
export async function knownSource(
  home: Home,
  { source, sha256, suite, refresh }: Selection,
): Promise<StoredSource | undefined> {
  if (refresh) return undefined
  if (source === undefined) {
    const current = await currentSource(home)
    if (suite === undefined || current?.debian?.suite === suite) return current
    return (await storedSources(home))
      .filter(({ debian }) => debian?.suite === suite)
      .sort((one, other) => other.fetchedAt.localeCompare(one.fetchedAt))[0]
  }
  const given = (await storedSources(home)).filter(({ route }) => route === 'given')
  if (isAddress(source)) {
    return given.find(
      ({ from, archive }) => from === source && (!sha256 || archive.sha256 === sha256),
    )
  }
  const actual = await sha256OfFile(await existingFile(source))
  if (sha256 && actual !== sha256) return undefined
  return given.find(({ archive }) => archive.sha256 === actual)
}

/**
 * Returns the selected source. Downloads and verifies it if it is not in the cache. The caller must hold the
 * lock, and makes the source the current one (`useSource`) when a build of it is complete: with a default
 * that cannot be built, every later start would fail.
 *
 * @throws RedisBuildError (SOURCE_REFUSED, SOURCE_UNAVAILABLE); the cache is unchanged then.
 */
export async function selectSource(job: Job, selection: Selection): Promise<StoredSource> {
  const known = await knownSource(job.home, selection)
  if (known) return known
  const source = await fetchSource(job, selection)
  // The next attempt would select the same source: it must not download it again.
  if (!isChosen(selection) && !(await currentSource(job.home))) await useSource(job.home, source)
  return source
}

/** If the selection names a source that is in the cache, makes it the current one. */
export async function useKnownSource(home: Home, selection: Selection): Promise<void> {
  if (!isChosen(selection)) return
  const source = await knownSource(home, selection)
  if (source) await useSource(home, source)
}

/** Whether the selection names a source or a suite. */
export function isChosen({ source, suite }: Selection): boolean {
  return source !== undefined || suite !== undefined
}

async function fetchSource(job: Job, selection: Selection): Promise<StoredSource> {
  const directory = await unfinishedSource(job.home)
  try {
    return await storeSource(job.home, directory, await firstThatWorks(job, directory, selection))
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function firstThatWorks(
  job: Job,
  directory: string,
  { source, sha256, suite }: Selection,
): Promise<Source> {
  if (source !== undefined) return await fromUser(job, directory, source, sha256)
  const routes: Route[] = [(failures) => fromDebian(job, directory, suite, failures)]
  // A user who selects a suite wants Debian's patches: no fallback to a release without them.
  if (suite === undefined) routes.push((failures) => fromRelease(job, directory, failures))
  const failures: string[] = []
  for (const route of routes) {
    const fetched = await route(failures)
    if (fetched) return fetched
  }
  throw new RedisBuildError(
    'SOURCE_UNAVAILABLE',
    `Could not download the source of Redis:
${failures.map((failure) => `  - ${failure}`).join('\n')}
Download one of these on another machine and pass the file with --source:

${releases.map(({ version }) => `    ${releaseUrl(version)}`).join('\n')}

    npm run redis -- build --source redis-${newestRelease().version}.tar.gz`,
  )
}
