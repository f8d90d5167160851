import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { RedisBuildError } from '../errors.ts'
import { readJson, sha256OfFile, writeJson } from '../files.ts'
import type { Home } from '../home.ts'

/** A source of Redis that was downloaded and verified. */
export interface Source {
  /** For people: a revision of Debian, a file or a URL. */
  from: string
  archive: SourceFile
  /** Debian's patches. A source without them lacks Debian's security fixes. */
  debian?: SourceFile
}

/** A file in the source's folder. */
export interface SourceFile {
  file: string
  sha256: string
}

/** A source with the folder of its files. */
export interface StoredSource extends Source {
  directory: string
}

const RECORD = 'source.json'

/** The source of the last build, which is the default for other builds. */
export async function currentSource(home: Home): Promise<StoredSource | undefined> {
  const source = await readJson<Source>(join(home.source, RECORD))
  return source && { ...source, directory: home.source }
}

/** Moves a downloaded source to its final folder, where it replaces the current one. */
export async function storeSource(
  home: Home,
  { directory, ...source }: StoredSource,
): Promise<StoredSource> {
  if (directory !== home.source) {
    await writeJson(join(directory, RECORD), source)
    await rm(home.source, { recursive: true, force: true })
    await rename(directory, home.source)
  }
  return { ...source, directory: home.source }
}

/**
 * Checks the SHA-256 of a file against `expected`, in lower case.
 *
 * @throws RedisBuildError (SOURCE_REFUSED) with both hashes.
 */
export async function verify(path: string, expected: string, what: string): Promise<void> {
  const actual = await sha256OfFile(path)
  if (actual === expected) return
  throw new RedisBuildError(
    'SOURCE_REFUSED',
    `${what} was rejected: its SHA-256 is not the expected one.
  expected ${expected}
  actual   ${actual}`,
  )
}
