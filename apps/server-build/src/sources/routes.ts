import { copyFile, mkdir, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { redisVersionIn } from '../archive.ts'
import { RedisBuildError } from '../errors.ts'
import { unfinished } from '../files.ts'
import type { Job } from '../job.ts'
import { newestRelease, releaseUrl } from '../releases.ts'
import { askDebian, type DebianRevision, fetchRevision } from './apt.ts'
import { download } from './https.ts'
import { type Source, withoutEpoch } from './source.ts'
import { verify, verifyGiven } from './verify.ts'

/**
 * A way to get a source. Returns undefined if the source is unavailable, and adds the reasons to `failures`.
 * Throws if a downloaded file has the wrong hash.
 */
export type Route = (failures: string[]) => Promise<Source | undefined>

/**
 * Copies or downloads the file or URL that the user gave into a folder.
 *
 * @throws RedisBuildError (SOURCE_REFUSED, SOURCE_UNAVAILABLE).
 */
export async function fromUser(
  job: Job,
  directory: string,
  source: string,
  sha256: string | undefined,
): Promise<Source> {
  job.progress.step(`Fetching ${source}`)
  const file = 'redis.tar.gz'
  const path = join(directory, file)
  if (isAddress(source)) await download(source, path, job)
  else await copyFile(await existingFile(source), path)
  const actual = await verifyGiven(path, sha256, source)
  const redisVersion = await redisVersionIn(path)
  if (!redisVersion) {
    throw new RedisBuildError(
      'SOURCE_REFUSED',
      `${source} is not a source archive of Redis: a .tar.gz with one folder that contains src/version.h.`,
    )
  }
  return {
    route: 'given',
    from: isAddress(source) ? source : resolve(source),
    redisVersion,
    archive: { file, sha256: actual },
    fetchedAt: new Date().toISOString(),
  }
}

/** Downloads the newest available revision of Debian's source package into a folder. */
export async function fromDebian(
  job: Job,
  directory: string,
  suite: string | undefined,
  failures: string[],
): Promise<Source | undefined> {
  const scratch = join(job.home.sources, `${unfinished}apt-${process.pid}`)
  const suites = suite ? ` (${suite})` : ''
  job.progress.step(`Looking for the source of Redis in Debian${suites}`)
  try {
    const offer = await askDebian(job, scratch, suite)
    failures.push(...offer.failures)
    for (const failure of offer.failures)
      job.progress.warn(`${failure}\n  This suite may have a newer source.`)
    if (offer.revisions.length === 0) failures.push(`Debian${suites}: no known release of Redis`)
    for (const revision of offer.revisions) {
      const failure = await failureOf(() => fetchAndVerify(job, revision, directory))
      if (failure === undefined) return sourceOf(revision)
      failures.push(failure)
      job.progress.warn(`${failure}\n  Trying an older source, which may lack security fixes.`)
      await rm(directory, { recursive: true })
      await mkdir(directory)
    }
    return undefined
  } catch (error) {
    if (!isUnavailable(error)) throw error
    failures.push(`Debian: ${error.message}`)
    return undefined
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

/** Downloads the newest known release archive into a folder. */
export async function fromRelease(
  job: Job,
  directory: string,
  failures: string[],
): Promise<Source | undefined> {
  const { version, sha256 } = newestRelease()
  const url = releaseUrl(version)
  const file = `redis-${version}.tar.gz`
  job.progress.step(`Downloading ${url}`)
  const failure = await failureOf(() => download(url, join(directory, file), job))
  if (failure !== undefined) {
    failures.push(failure)
    return undefined
  }
  await verify(join(directory, file), sha256, url)
  return {
    route: 'release',
    from: url,
    redisVersion: version,
    archive: { file, sha256 },
    fetchedAt: new Date().toISOString(),
  }
}

export function isAddress(source: string): boolean {
  return /^https?:\/\//.test(source)
}

/** @throws RedisBuildError (SOURCE_UNAVAILABLE) if the file does not exist. */
export async function existingFile(file: string): Promise<string> {
  const path = resolve(file)
  const found = await stat(path).catch(() => undefined)
  if (found?.isFile()) return path
  throw new RedisBuildError(
    'SOURCE_UNAVAILABLE',
    `The source archive ${path} does not exist (--source or REDIS_SOURCE).`,
  )
}

async function fetchAndVerify(
  job: Job,
  revision: DebianRevision,
  directory: string,
): Promise<void> {
  job.progress.update(
    `Downloading Redis ${withoutEpoch(revision.version)} from Debian ${revision.suite}`,
  )
  await fetchRevision(job, revision, directory)
  for (const { file, sha256 } of [revision.archive, revision.patches]) {
    await verify(join(directory, file), sha256, file)
  }
}

function sourceOf({ version, suite, redisVersion, archive, patches }: DebianRevision): Source {
  return {
    route: 'debian',
    from: `Debian ${withoutEpoch(version)} (${suite})`,
    redisVersion,
    archive,
    debian: { version, suite, ...patches },
    fetchedAt: new Date().toISOString(),
  }
}

async function failureOf(work: () => Promise<void>): Promise<string | undefined> {
  try {
    await work()
    return undefined
  } catch (error) {
    if (isUnavailable(error)) return error.message
    throw error
  }
}

function isUnavailable(error: unknown): error is RedisBuildError {
  return error instanceof RedisBuildError && error.code === 'SOURCE_UNAVAILABLE'
}
