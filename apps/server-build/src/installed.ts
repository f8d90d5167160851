import { join } from 'node:path'
import type { BuildName } from './builds.ts'
import { namesIn, readJson, sha256 } from './files.ts'
import type { Home } from './home.ts'
import type { Source } from './sources/source.ts'
import type { Compilers } from './toolchain.ts'

/** All inputs of a build. Their hash is the build's key. */
export interface Inputs {
  build: BuildName
  /** SHA-256 of the archive. */
  archive: string
  /** SHA-256 of Debian's patches; null without them. */
  debian: string | null
  /** SHA-256 of our patches. */
  patches: string
  makeFlags: readonly string[]
  compilers: Compilers
  /** Such as `linux-x64`. */
  platform: string
}

/** The record in the folder of a finished build. */
export interface BuildRecord {
  build: BuildName
  /** 64 hex digits. */
  key: string
  redisVersion: string
  source: Source
  /** Names of the patches of Debian that were applied, in order. */
  debianPatches: string[]
  /** Names of our patches, in order. */
  patches: string[]
  inputs: Inputs
  builtAt: string
  compileSeconds: number
}

export interface InstalledBuild extends BuildRecord {
  directory: string
}

const RECORD = 'build.json'

export function keyOf(inputs: Inputs): string {
  return sha256(JSON.stringify(inputs))
}

/** The first 12 digits of a key, as used in paths, messages and `INFO server`. */
export function shortKey(key: string): string {
  return key.slice(0, 12)
}

export function platform(): string {
  return `${process.platform}-${process.arch}`
}

export function recordPath(directory: string): string {
  return join(directory, RECORD)
}

/** The folder of a finished build. */
export function directoryOf(home: Home, build: BuildName, key: string): string {
  return join(home.builds, `${build}-${shortKey(key)}`)
}

/** The finished builds with a name, newest first. */
export async function installedBuilds(home: Home, build: BuildName): Promise<InstalledBuild[]> {
  const names = await namesIn(home.builds)
  const records = await Promise.all(
    names.map(async (name) => {
      const directory = join(home.builds, name)
      const record = await readJson<BuildRecord>(recordPath(directory))
      return record && { ...record, directory }
    }),
  )
  return records
    .filter((record) => record !== undefined)
    .filter((record) => record.build === build)
    .sort((one, other) => other.builtAt.localeCompare(one.builtAt))
}

/** The path of a program of a build. */
export function programPath(build: InstalledBuild, program: string): string {
  return join(build.directory, 'bin', program)
}

/** A warning about a build without Debian's patches; undefined if the build has them. */
export function lackOfFixes({ debian, from }: Source): string | undefined {
  if (debian) return undefined
  return `WARNING: This Redis LACKS DEBIAN'S SECURITY FIXES: it is built from ${from} alone.`
}
