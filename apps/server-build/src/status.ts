import { join } from 'node:path'
import { type BuildName, programsOf } from './builds.ts'
import { findBuild } from './find.ts'
import type { Home } from './home.ts'
import { type InstalledBuild, installedBuilds, shortKey } from './installed.ts'
import { selectionFrom } from './sources/select.ts'

export interface BuildStatus {
  build: BuildName
  /** `outdated`: source, patches, flags or compilers have changed since the build. */
  state: 'built' | 'outdated' | 'missing'
  details?: {
    key: string
    path: string
    redisVersion: string
    source: string
    securityPatches: string[]
    otherPatchesOfDebian: string[]
    patches: string[]
    builtAt: string
    compileSeconds: number
    /** Paths by name. */
    programs: Record<string, string>
  }
}

/** The state of each build. Changes nothing and does not use the network. */
export async function statusOf(
  home: Home,
  builds: readonly BuildName[],
  env: NodeJS.ProcessEnv,
): Promise<BuildStatus[]> {
  return await Promise.all(
    builds.map(async (build) => {
      const upToDate = await findBuild(home, build, selectionFrom(env), env)
      const installed = upToDate ?? (await installedBuilds(home, build))[0]
      if (!installed) return { build, state: 'missing' }
      return { build, state: upToDate ? 'built' : 'outdated', details: detailsOf(installed) }
    }),
  )
}

/** The path of a program of a build. */
export function programPath(build: InstalledBuild, program: string): string {
  return join(build.directory, 'bin', program)
}

function detailsOf(build: InstalledBuild): NonNullable<BuildStatus['details']> {
  // Names of fixes of vulnerabilities say so.
  const fixes = build.debianPatches.filter((name) => /cve|security/i.test(name))
  return {
    key: build.key,
    path: build.directory,
    redisVersion: build.redisVersion,
    source: build.source.from,
    securityPatches: fixes,
    otherPatchesOfDebian: build.debianPatches.filter((name) => !fixes.includes(name)),
    patches: build.patches,
    builtAt: build.builtAt,
    compileSeconds: build.compileSeconds,
    programs: Object.fromEntries(
      programsOf(build.build).map((program) => [program, programPath(build, program)]),
    ),
  }
}

/** Formats a status for people. */
export function describe({ build, state, details }: BuildStatus): string {
  if (!details) return `${build}: not built (npm run redis -- build ${build})`
  const bare = (names: readonly string[]) => names.map((name) => name.replace(/\.patch$/, ''))
  const rows = [
    ['Redis', `${details.redisVersion}, ${details.source}`],
    ['key', shortKey(details.key)],
    ['built', `${details.builtAt}, compiled in ${details.compileSeconds} s`],
    ['programs', `${join(details.path, 'bin')}: ${programsOf(build).join(', ')}`],
    ['security patches', bare(details.securityPatches).join(', ') || 'NONE'],
    ['our patches', bare(details.patches).join(', ') || 'none'],
  ]
  const title = state === 'built' ? 'built' : 'outdated (rebuilt by the next build or run)'
  return `${build}: ${title}\n${rows.map(([name = '', text]) => `  ${name.padEnd(17)} ${text}`).join('\n')}`
}
