import { type BuildName, makeFlagsOf, type Variant } from './builds.ts'
import type { Home } from './home.ts'
import { type Inputs, type InstalledBuild, installedBuilds, platform } from './installed.ts'
import { hashOfPatches, patchesDirectory, patchesOf } from './patches.ts'
import { knownSource, type Selection } from './sources/select.ts'
import { findTools } from './toolchain.ts'

/**
 * Finds a finished build that is what building now would make. Asks no network and hashes only small
 * files, so it takes a fraction of a second.
 *
 * What is not known here does not count: without a compiler, or without a cached source, a build that
 * was made elsewhere (as for a container image) is as good as it gets.
 *
 * @returns undefined when there is none.
 */
export async function findBuild(
  home: Home,
  build: BuildName,
  selection: Selection & Variant,
  env: NodeJS.ProcessEnv,
): Promise<InstalledBuild | undefined> {
  if (selection.refresh) return undefined
  const [installed, source, { compilers }, patches] = await Promise.all([
    installedBuilds(home, build),
    knownSource(home, selection),
    findTools(env),
    patchesOf(build, patchesDirectory(env)).then(hashOfPatches),
  ])
  const chosen = selection.source !== undefined || selection.suite !== undefined
  if (chosen && !source) return undefined
  const wanted: Partial<Inputs> = {
    patches,
    makeFlags: makeFlagsOf(build, selection),
    platform: platform(),
    ...(compilers && { compilers }),
    ...(source && { archive: source.archive.sha256, debian: source.debian?.sha256 ?? null }),
  }
  return installed.find(({ inputs }) => agrees(inputs, wanted))
}

function agrees(inputs: Inputs, wanted: Partial<Inputs>): boolean {
  return JSON.stringify({ ...inputs, ...wanted }) === JSON.stringify(inputs)
}
