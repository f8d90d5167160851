import { copyFile, mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { unpackTarGz, unpackTarXz } from './archive.ts'
import { type BuildName, makeFlagsOf, programsOf, type Variant } from './builds.ts'
import { runCommand } from './command.ts'
import { compile } from './compile.ts'
import { RedisBuildError } from './errors.ts'
import { removeUnfinished, unfinished, writeJson } from './files.ts'
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
import { type Selection, selectSource, useKnownSource } from './sources/select.ts'
import { type StoredSource, useSource } from './sources/source.ts'
import { requireOpenssl, requireTools } from './toolchain.ts'

export interface BuildOptions extends Selection, Variant {
  /** Number of parallel compilers. Default: one per core. */
  jobs?: number
}

/**
 * Returns a build; builds it first if it is missing. The source is downloaded, verified, patched and compiled
 * in a temporary folder, which is moved to its final place when the build is complete.
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
  const found = await findBuild(job.home, build, options, job.env)
  if (found) {
    await useKnownSource(job.home, options)
    return found
  }
  return await locked(job, async (job) => {
    const madeMeanwhile = await findBuild(job.home, build, options, job.env)
    if (madeMeanwhile) return madeMeanwhile
    try {
      const made = await make(job, build, options)
      job.progress.end(true)
      return made
    } catch (error) {
      job.progress.end(false)
      throw error
    }
  })
}

async function make(job: Job, build: BuildName, options: BuildOptions): Promise<InstalledBuild> {
  const compilers = await requireTools(job.env)
  if (options.tls) await requireOpenssl(job.env)
  await removeUnfinished(job.home.sources)
  await removeUnfinished(job.home.builds)
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
    await useSource(job.home, source)
    return installed
  }
  const lack = lackOfFixes({ source })
  if (lack) job.progress.warn(lack)

  const aside = join(job.home.builds, `${unfinished}${build}-${process.pid}`)
  try {
    const tree = join(aside, 'redis')
    const fromDebian = await prepareTree(job, source, patches, aside, tree)
    const compileSeconds = await compile(job, {
      build,
      key,
      tree,
      makeFlags: inputs.makeFlags,
      jobs: options.jobs,
    })
    const ready = join(aside, 'ready')
    await install(build, tree, ready)
    await checkThatItRuns(job, ready, inputs, source)
    const { directory: _, ...record } = source
    const built: BuildRecord = {
      build,
      key,
      redisVersion: source.redisVersion,
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
    await rm(directory, { recursive: true, force: true })
    await rename(ready, directory)
    await useSource(job.home, source)
    return { ...built, directory }
  } finally {
    await rm(aside, { recursive: true, force: true })
  }
}

/**
 * Unpacks a source into `tree` and patches it.
 *
 * @param aside a folder for temporary files, such as Debian's patches.
 * @returns the patches of Debian that were applied.
 * @throws RedisBuildError (PATCH_REJECTED) that names all patches that do not apply.
 */
export async function prepareTree(
  job: Job,
  source: StoredSource,
  patches: readonly Patch[],
  aside: string,
  tree: string,
): Promise<Patch[]> {
  job.progress.step(`Unpacking Redis ${source.redisVersion} (${source.from})`)
  await unpackTarGz(join(source.directory, source.archive.file), tree)
  const fromDebian: Patch[] = []
  if (source.debian) {
    await unpackTarXz(join(source.directory, source.debian.file), aside)
    fromDebian.push(...(await debianPatches(join(aside, 'debian'))))
  }
  job.progress.step(
    `Applying ${fromDebian.length} of Debian's patches and ${patches.length} of ours`,
  )
  const rejected: string[] = []
  for (const patch of [...fromDebian, ...patches]) {
    await applyPatch(tree, patch, job).catch((error) => {
      if (!(error instanceof RedisBuildError)) throw error
      rejected.push(error.message)
    })
  }
  if (rejected.length === 0) return fromDebian
  throw new RedisBuildError('PATCH_REJECTED', rejected.join('\n\n'))
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
  { redisVersion }: StoredSource,
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
