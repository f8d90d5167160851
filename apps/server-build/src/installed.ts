import { join } from 'node:path'
import type { BuildName } from './builds.ts'
import { namesIn, readJson, sha256, unfinished } from './files.ts'
import type { Home } from './home.ts'
import type { Source } from './sources/source.ts'
import type { Compilers } from './toolchain.ts'

/** Everything that decides what comes out of a build. Its hash is the build's key. */
export interface Inputs {
  build: BuildName
  /** SHA-256 of the archive. */
  archive: string
  /** SHA-256 of Debian's patches, null without them. */
  debian: string | null
  /** SHA-256 of our patches. */
  patches: string
  makeFlags: readonly string[]
  compilers: Compilers
  /** Such as `linux-x64`. */
  platform: string
}

/** The record in a finished build's folder. */
export interface BuildRecord {
  build: BuildName
  /** 64 hex digits; the first 12 are enough to tell builds apart. */
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

/** The part of a key that people, paths and the server itself use. */
export function shortKey(key: string): string {
  return key.slice(0, 12)
}

export function platform(): string {
  return `${process.platform}-${process.arch}`
}

export function recordPath(directory: string): string {
  return join(directory, RECORD)
}

/** The folder that a build goes to when it is finished. */
export function directoryOf(home: Home, build: BuildName, key: string): string {
  return join(home.builds, `${build}-${shortKey(key)}`)
}

/** The finished builds of a name, the newest first. */
export async function installedBuilds(home: Home, build: BuildName): Promise<InstalledBuild[]> {
  const names = (await namesIn(home.builds)).filter((name) => !name.startsWith(unfinished))
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

/** Debian's patches that fix a vulnerability, by their names. */
export function securityPatches(names: readonly string[]): string[] {
  return names.filter((name) => /cve|security/i.test(name))
}

/** What to say of a build without Debian's patches; undefined when it has them. */
export function lackOfFixes({ source }: Pick<BuildRecord, 'source'>): string | undefined {
  if (source.debian) return undefined
  return `This Redis ${source.redisVersion} LACKS DEBIAN'S SECURITY FIXES: it is built from ${source.from} alone.`
}
