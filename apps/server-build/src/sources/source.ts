import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { namesIn, readJson, unfinished, writeJson } from '../files.ts'
import type { Home } from '../home.ts'

/** A source of Redis that was fetched and verified. */
export interface Source {
  route: 'debian' | 'release' | 'given'
  /** In words: a Debian revision and its suite, a file, an address. */
  from: string
  redisVersion: string
  /** The archive's file in the source's folder. */
  archive: { file: string; sha256: string }
  /** Debian's patches for it. Without them it lacks their security fixes. */
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

/** The source that was used last, and which a build uses when it is not told otherwise. */
export async function currentSource(home: Home): Promise<StoredSource | undefined> {
  const current = await readJson<{ name: string }>(home.currentSource)
  return current && (await storedSource(home, current.name))
}

/** Makes a stored source the one that is used from now on. */
export async function useSource(home: Home, name: string): Promise<void> {
  const aside = `${home.currentSource}.${process.pid}`
  await writeJson(aside, { name })
  await rename(aside, home.currentSource)
}

/**
 * Moves a folder that holds a fetched and verified source into the cache.
 *
 * @param directory must be in `home.sources`; it is gone afterwards.
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

/** A new folder in the cache, for a source on its way. */
export async function unfinishedSource(home: Home): Promise<string> {
  const directory = join(home.sources, `${unfinished}${process.pid}`)
  await rm(directory, { recursive: true, force: true })
  await mkdir(directory, { recursive: true })
  return directory
}

/** A Debian version as people and file names have it: without the `5:` that only apt needs. */
export function withoutEpoch(version: string): string {
  return version.replace(/^\d+:/, '')
}

async function storedSource(home: Home, name: string): Promise<StoredSource | undefined> {
  const directory = join(home.sources, name)
  const source = await readJson<Source>(join(directory, RECORD))
  return source && { ...source, directory }
}
