import { copyFile, mkdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { RedisBuildError } from '../errors.ts'
import { sha256OfFile } from '../files.ts'
import type { Home } from '../home.ts'
import type { Job } from '../job.ts'
import { timed } from '../progress.ts'
import { newestRelease, releases, releaseUrl } from '../releases.ts'
import { fetchFromDebian } from './apt.ts'
import { download } from './https.ts'
import { currentSource, type Source, type StoredSource, storeSource, verify } from './source.ts'

/** The source for a build. Default: the current one, otherwise the newest available one. */
export interface Selection {
  /** A file or a URL. */
  source?: string | undefined
  /** The SHA-256 of `source`, in lower case. Default: `source` must be a known release. */
  sha256?: string
  /** Look for a newer source. */
  refresh?: boolean
}

/** The selection in the environment, for commands without options for it. */
export function selectionFrom(env: NodeJS.ProcessEnv): Selection {
  return env.REDIS_SOURCE ? { source: env.REDIS_SOURCE } : {}
}

/** The current source if it is the selected one. Does not use the network. */
export async function knownSource(
  home: Home,
  { source, sha256, refresh }: Selection,
): Promise<StoredSource | undefined> {
  if (refresh) return undefined
  const current = await currentSource(home)
  if (!current || source === undefined) return current
  const actual = current.archive.sha256
  if (sha256 && sha256 !== actual) return undefined
  const isSame = isUrl(source)
    ? current.from === source
    : !current.debian && actual === (await sha256OfFile(await existingFile(source)))
  return isSame ? current : undefined
}

/**
 * Returns the selected source; downloads and verifies it if it is not the current one. The caller must hold the lock,
 * and makes a new source the current one (`storeSource`) when a build of it is complete: with a current source that
 * cannot be built, every later start would fail.
 *
 * @throws RedisBuildError (SOURCE_REFUSED, SOURCE_UNAVAILABLE).
 */
export async function selectSource(job: Job, selection: Selection): Promise<StoredSource> {
  const known = await knownSource(job.home, selection)
  if (known) return known
  const directory = join(job.home.temporary, 'source')
  await mkdir(directory, { recursive: true })
  if (selection.source !== undefined) {
    return { ...(await given(job, directory, selection.source, selection.sha256)), directory }
  }
  const source = { ...(await newest(job, directory)), directory }
  // After an interrupt, the next attempt would select the same source: it must not download it again.
  return (await currentSource(job.home)) ? source : await storeSource(job.home, source)
}

async function newest(job: Job, directory: string): Promise<Source> {
  const failures: string[] = []
  const sources = [
    ['Debian', fetchFromDebian],
    ['GitHub', fetchRelease],
  ] as const
  for (const [name, fetchFrom] of sources) {
    try {
      const text = `Downloading the source of Redis from ${name}`
      return await timed(job.progress, text, () => fetchFrom(job, directory))
    } catch (error) {
      if (!(error instanceof RedisBuildError && error.code === 'SOURCE_UNAVAILABLE')) throw error
      failures.push(error.message)
    }
  }
  const { version } = newestRelease()
  const file = `redis-${version}.tar.gz`
  const [place, command] = job.env.BUILDS_IMAGE
    ? [`docker/${file} in the repository`, `REDIS_SOURCE=docker/${file} docker compose build redis`]
    : [file, `npm run redis -- build --source redis-${version}.tar.gz`]
  throw new RedisBuildError(
    'SOURCE_UNAVAILABLE',
    `Could not download the source of Redis:
${failures.map((failure) => `  - ${failure}`).join('\n')}
Download ${releaseUrl(version)} on another machine, save it as ${place}, and run:

    ${command}`,
  )
}

async function fetchRelease(job: Job, directory: string): Promise<Source> {
  const { version, sha256 } = newestRelease()
  const url = releaseUrl(version)
  const file = `redis-${version}.tar.gz`
  await download(url, join(directory, file), job)
  await verify(join(directory, file), sha256, url)
  return { from: url, archive: { file, sha256 } }
}

/** Copies or downloads the file or URL that the user gave. */
async function given(
  job: Job,
  directory: string,
  source: string,
  expected: string | undefined,
): Promise<Source> {
  const file = 'redis.tar.gz'
  const path = join(directory, file)
  if (isUrl(source)) await download(source, path, job)
  else await copyFile(await existingFile(source), path)
  const sha256 = await sha256OfFile(path)
  if (expected) await verify(path, expected, source)
  else if (!releases.some((known) => known.sha256 === sha256)) {
    throw new RedisBuildError(
      'SOURCE_REFUSED',
      `${source} was rejected: it is not a known release.
${releases.map((known) => `  expected ${known.sha256} (Redis ${known.version})`).join('\n')}
  actual   ${sha256}
If you trust this file, add --sha256 ${sha256}`,
    )
  }
  return { from: isUrl(source) ? source : resolve(source), archive: { file, sha256 } }
}

function isUrl(source: string): boolean {
  return /^https?:\/\//.test(source)
}

async function existingFile(file: string): Promise<string> {
  const path = resolve(file)
  const found = await stat(path).catch(() => undefined)
  if (found?.isFile()) return path
  throw new RedisBuildError(
    'SOURCE_UNAVAILABLE',
    `The source archive ${path} does not exist (--source or REDIS_SOURCE).`,
  )
}
