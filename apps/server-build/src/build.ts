import { copyFile, mkdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { unpackTarGz, unpackTarXz } from './archive.ts'
import { type BuildName, makeFlagsOf, programsOf, type Variant } from './builds.ts'
import { runCommand } from './command.ts'
import { compile } from './compile.ts'
import { RedisBuildError } from './errors.ts'
import { writeJson } from './files.ts'
import { findBuild } from './find.ts'
import {
  type BuildRecord,
  directoryOf,
  type Inputs,
  type InstalledBuild,
  installedBuilds,
  keyOf,
  lackOfFixes,
  platform,
  recordPath,
  shortKey,
} from './installed.ts'
import type { Job } from './job.ts'
import { locked } from './lock.ts'
import {
  applyPatch,
  debianPatches,
  hashOfPatches,
  type Patch,
  patchesDirectory,
  patchesOf,
} from './patches.ts'
import { type Selection, selectSource } from './sources/select.ts'
import { type StoredSource, storeSource } from './sources/source.ts'
import { requireOpenssl, requireTools } from './toolchain.ts'

export type BuildOptions = Selection & Variant

/**
 * Returns a build; builds it first if it is missing. The source is downloaded, verified, patched and compiled
 * in a temporary folder; the programs are moved to their final place when the build is complete.
 *
 * If several processes need the same build, one builds it and the others wait.
 *
 * @throws RedisBuildError, see its codes; the reason of `job.signal` after an interrupt. No partial build is
 *   left behind.
 */
export async function ensureBuilt(
  job: Job,
  build: BuildName,
  options: BuildOptions = {},
): Promise<InstalledBuild> {
  const find = () => findBuild(job.home, build, options, job.env)
  return (
    (await find()) ??
    (await locked(job, async (job) => (await find()) ?? (await make(job, build, options))))
  )
}

/** Builds in the temporary folder. The caller must hold the lock. */
async function make(job: Job, build: BuildName, options: BuildOptions): Promise<InstalledBuild> {
  const compilers = await requireTools(job.env)
  if (options.tls) await requireOpenssl(job.env)
  const source = await selectSource(job, options)
  const patches = await patchesOf(build, patchesDirectory(job.env))
  const inputs: Inputs = {
    build,
    archive: source.archive.sha256,
    debian: source.debian?.sha256 ?? null,
    patches: await hashOfPatches(patches),
    makeFlags: makeFlagsOf(build, options),
    compilers,
    platform: platform(),
  }
  const key = keyOf(inputs)
  const installed = (await installedBuilds(job.home, build)).find((other) => other.key === key)
  if (installed) {
    await storeSource(job.home, source)
    return installed
  }
  const lack = lackOfFixes(source)
  if (lack) job.progress.note(lack)

  const tree = join(job.home.temporary, 'redis')
  const { redisVersion, fromDebian } = await prepareTree(job, source, patches, tree)
  const { makeFlags } = inputs
  const compileSeconds = await compile(job, { build, key, tree, makeFlags })
  const ready = join(job.home.temporary, 'ready')
  await install(build, tree, ready)
  await checkThatItRuns(job, ready, inputs, redisVersion)
  const { directory: _, ...record } = source
  const built: BuildRecord = {
    build,
    key,
    redisVersion,
    source: record,
    debianPatches: fromDebian.map(({ name }) => name),
    patches: patches.map(({ name }) => name),
    inputs,
    builtAt: new Date().toISOString(),
    compileSeconds,
  }
  await writeJson(recordPath(ready), built)
  job.signal.throwIfAborted()
  const directory = directoryOf(job.home, build, key)
  await mkdir(dirname(directory), { recursive: true })
  await rm(directory, { recursive: true, force: true })
  await rename(ready, directory)
  await storeSource(job.home, source)
  return { ...built, directory }
}

interface Tree {
  redisVersion: string
  /** The patches of Debian that were applied. */
  fromDebian: Patch[]
}

/**
 * Unpacks a source into `tree` and patches it. Debian's patches go to the folder of the tree.
 *
 * @throws RedisBuildError (SOURCE_REFUSED), or (PATCH_REJECTED) that names all patches that do not apply.
 */
export async function prepareTree(
  job: Job,
  source: StoredSource,
  patches: readonly Patch[],
  tree: string,
): Promise<Tree> {
  const { debian, directory } = source
  const redisVersion = await unpack(source, tree)
  const fromDebian: Patch[] = []
  if (debian) {
    await unpackTarXz(join(directory, debian.file), dirname(tree))
    fromDebian.push(...(await debianPatches(join(dirname(tree), 'debian'))))
  }
  job.progress.note(
    `Applying ${fromDebian.length} of Debian's patches and ${patches.length} of ours to Redis ${redisVersion}`,
  )
  const rejected: string[] = []
  for (const patch of [...fromDebian, ...patches]) {
    await applyPatch(tree, patch, job).catch((error) => {
      if (!(error instanceof RedisBuildError)) throw error
      rejected.push(error.message)
    })
  }
  if (rejected.length === 0) return { redisVersion, fromDebian }
  throw new RedisBuildError('PATCH_REJECTED', rejected.join('\n\n'))
}

/** @returns the version of Redis. */
async function unpack({ archive, directory, from }: StoredSource, tree: string): Promise<string> {
  try {
    await unpackTarGz(join(directory, archive.file), tree)
    const header = await readFile(join(tree, 'src', 'version.h'), 'utf8')
    const version = /^#define REDIS_VERSION "([^"]+)"/m.exec(header)?.[1]
    if (version) return version
    throw new Error('src/version.h has no version')
  } catch (cause) {
    throw new RedisBuildError(
      'SOURCE_REFUSED',
      `${from} is not a source archive of Redis, a .tar.gz with one folder that contains src/version.h (${cause}).`,
      { cause },
    )
  }
}

async function install(build: BuildName, tree: string, ready: string): Promise<void> {
  const bin = join(ready, 'bin')
  await mkdir(bin, { recursive: true })
  for (const program of programsOf(build)) {
    await copyFile(join(tree, 'src', program), join(bin, program))
  }
}

async function checkThatItRuns(
  job: Job,
  ready: string,
  inputs: Inputs,
  redisVersion: string,
): Promise<void> {
  const { build } = inputs
  const expected = build === 'tools' ? redisVersion : `onetrip=${build}-${shortKey(keyOf(inputs))}`
  for (const program of programsOf(build)) {
    const { code, stdout, stderr } = await runCommand(join(ready, 'bin', program), ['--version'], {
      signal: job.signal,
    })
    if (code === 0 && stdout.includes(expected)) continue
    throw new RedisBuildError(
      'BUILD_BROKEN',
      `Compiled, but ${program} --version does not print ${expected}. Its output:\n${stdout}${stderr}`,
    )
  }
}
