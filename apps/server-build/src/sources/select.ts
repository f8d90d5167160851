import { rm } from 'node:fs/promises'
import { basename } from 'node:path'
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

/** Which source a build shall use. Nothing said: the one used last, or else the best there is. */
export interface Selection {
  /** A file or an address. */
  source?: string | undefined
  /** The SHA-256 that `source` must have; without it, that of a known release. */
  sha256?: string
  /** Only this suite of Debian. */
  suite?: string
  /** Ask Debian again, although there is a source. */
  refresh?: boolean
}

/** What the environment says of the source, for commands that have no options for it. */
export function selectionFrom(env: NodeJS.ProcessEnv): Selection {
  return env.REDIS_SOURCE ? { source: env.REDIS_SOURCE } : {}
}

/** The source that a selection means, if it is in the cache already. Asks no network. */
export async function knownSource(
  home: Home,
  { source, sha256, suite, refresh }: Selection,
): Promise<StoredSource | undefined> {
  if (refresh) return undefined
  if (source === undefined) {
    const current = await currentSource(home)
    return suite === undefined || current?.debian?.suite === suite ? current : undefined
  }
  const given = (await storedSources(home)).filter(({ route }) => route === 'given')
  if (isAddress(source)) {
    return given.find(
      ({ from, archive }) => from === source && (!sha256 || archive.sha256 === sha256),
    )
  }
  const actual = await sha256OfFile(await existingFile(source))
  if (sha256 && actual !== sha256.toLowerCase()) return undefined
  return given.find(({ archive }) => archive.sha256 === actual)
}

/**
 * Fetches and verifies the source that a selection means, unless it is in the cache, and makes it the
 * one to use from now on. Only for a process that holds the lock.
 *
 * @throws RedisBuildError (SOURCE_REFUSED, SOURCE_UNAVAILABLE); nothing is in the cache then.
 */
export async function selectSource(job: Job, selection: Selection): Promise<StoredSource> {
  const source = (await knownSource(job.home, selection)) ?? (await fetchSource(job, selection))
  await useSource(job.home, basename(source.directory))
  return source
}

/** Makes a source that is in the cache the one to use from now on, if the selection names one. */
export async function useKnownSource(home: Home, selection: Selection): Promise<void> {
  if (selection.source === undefined && selection.suite === undefined) return
  const source = await knownSource(home, selection)
  if (source) await useSource(home, basename(source.directory))
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
  // Whoever names a suite wants Debian's patches, not whatever can be had.
  if (suite === undefined) routes.push((failures) => fromRelease(job, directory, failures))
  const failures: string[] = []
  for (const route of routes) {
    const fetched = await route(failures)
    if (fetched) return fetched
  }
  throw new RedisBuildError(
    'SOURCE_UNAVAILABLE',
    `The source of Redis could not be fetched. What was tried:
${failures.map((failure) => `  - ${failure}`).join('\n')}
Fetch one of these elsewhere and give the file:

${releases.map(({ version }) => `    ${releaseUrl(version)}`).join('\n')}

    npm run redis -- build --source redis-${newestRelease().version}.tar.gz`,
  )
}
