import { type BuildName, makeFlagsOf, type Variant } from './builds.ts'
import type { Home } from './home.ts'
import { type Inputs, type InstalledBuild, installedBuilds, platform } from './installed.ts'
import { hashOfPatches, patchesDirectory, patchesOf } from './patches.ts'
import { knownSource, type Selection } from './sources/select.ts'
import { findTools } from './toolchain.ts'

/**
 * Finds a finished build with the inputs that a new build would have now. Needs no network and hashes only
 * small files, so it takes a fraction of a second.
 *
 * Unknown inputs are not compared: without a compiler or a cached source, a build that was made elsewhere (as
 * for a container image) matches.
 *
 * @returns undefined if no build matches.
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
  if (selection.source !== undefined && !source) return undefined
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
