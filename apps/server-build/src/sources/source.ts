import { mkdir, rename, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { namesIn, readJson, unfinished, writeJson } from '../files.ts'
import type { Home } from '../home.ts'

/** A source of Redis that was downloaded and verified. */
export interface Source {
  route: 'debian' | 'release' | 'given'
  /** For people: a Debian revision and its suite, a file or a URL. */
  from: string
  redisVersion: string
  /** The archive in the source's folder. */
  archive: { file: string; sha256: string }
  /** Debian's patches. A source without them lacks Debian's security fixes. */
  debian?: { version: string; suite: string; file: string; sha256: string }
  fetchedAt: string
}

/** A source in the cache. */
export interface StoredSource extends Source {
  directory: string
}

const RECORD = 'source.json'

/** All sources in the cache. */
export async function storedSources(home: Home): Promise<StoredSource[]> {
  const names = (await namesIn(home.sources)).filter((name) => !name.startsWith(unfinished))
  const sources = await Promise.all(names.map((name) => storedSource(home, name)))
  return sources.filter((source) => source !== undefined)
}

/** The current source: that of the build completed or selected last, and the default for builds. */
export async function currentSource(home: Home): Promise<StoredSource | undefined> {
  const current = await readJson<{ name: string }>(home.currentSource)
  return current && (await storedSource(home, current.name))
}

/** Makes a stored source the current one. */
export async function useSource(home: Home, { directory }: StoredSource): Promise<void> {
  const aside = `${home.currentSource}.${process.pid}`
  await writeJson(aside, { name: basename(directory) })
  await rename(aside, home.currentSource)
}

/**
 * Moves the folder of a downloaded and verified source into the cache.
 *
 * @param directory must be in `home.sources`; it no longer exists afterwards.
 */
export async function storeSource(
  home: Home,
  directory: string,
  source: Source,
): Promise<StoredSource> {
  const revision = source.debian
    ? withoutEpoch(source.debian.version)
    : `${source.redisVersion}-${source.archive.sha256.slice(0, 12)}`
  const name = `redis-${revision}`
  const target = join(home.sources, name)
  await writeJson(join(directory, RECORD), source)
  await rm(target, { recursive: true, force: true })
  await rename(directory, target)
  return { ...source, directory: target }
}

/** Creates a folder in the cache for a source that is being downloaded. */
export async function unfinishedSource(home: Home): Promise<string> {
  const directory = join(home.sources, `${unfinished}${process.pid}`)
  await rm(directory, { recursive: true, force: true })
  await mkdir(directory, { recursive: true })
  return directory
}

/** A Debian version without the epoch (`5:`), as in file names and messages. */
export function withoutEpoch(version: string): string {
  return version.replace(/^\d+:/, '')
}

async function storedSource(home: Home, name: string): Promise<StoredSource | undefined> {
  const directory = join(home.sources, name)
  const source = await readJson<Source>(join(directory, RECORD))
  return source && { ...source, directory }
}
