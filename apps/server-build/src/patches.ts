import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BuildName } from './builds.ts'
import { plainEnvironment, runCommand } from './command.ts'
import { RedisBuildError } from './errors.ts'
import { sha256 } from './files.ts'

export interface Patch {
  name: string
  path: string
}

/** The folder of our patches; `REDIS_PATCHES` selects another folder with the same layout. */
export function patchesDirectory(env: NodeJS.ProcessEnv): string {
  return env.REDIS_PATCHES || fileURLToPath(new URL('../patches', import.meta.url))
}

/** The patches in a series file, in order. Lines that begin with `#` are comments. */
async function readSeries(series: string): Promise<Patch[]> {
  const text = await readFile(series, 'utf8')
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((name) => ({ name, path: join(dirname(series), name) }))
}

/**
 * Our patches in a build. The tools have none.
 *
 * @throws RedisBuildError (USAGE) if the folder has no series for the build, or the series lacks the patch
 *   after `@`.
 */
export async function patchesOf(build: BuildName, directory: string): Promise<Patch[]> {
  if (build === 'tools') return []
  const [name, last] = build.split('@')
  const series = join(directory, `${name}.series`)
  const patches = await readSeries(series).catch((error) => {
    throw new RedisBuildError(
      'USAGE',
      `Cannot read ${series}, the list of patches of ${build}. Check REDIS_PATCHES if it is set.`,
      { cause: error },
    )
  })
  if (last === undefined) return patches
  const index = patches.findIndex((patch) => patch.name.startsWith(`${last}-`))
  if (index !== -1) return patches.slice(0, index + 1)
  const numbers = patches.map((patch) => patch.name.split('-', 1)[0]).join(', ')
  throw new RedisBuildError(
    'USAGE',
    `The build ${build} does not exist: ${series} has no patch ${last}. It has ${numbers}.`,
  )
}

/**
 * Debian's patches for the source, in order, except those in `debian-packaging/`, which change defaults to
 * Debian's paths. Selecting security fixes by name would miss one without "CVE" in its name.
 */
export async function debianPatches(debian: string): Promise<Patch[]> {
  const patches = await readSeries(join(debian, 'patches', 'series'))
  return patches.filter(({ name }) => !name.startsWith('debian-packaging/'))
}

/** A hash of the names and contents of patches, in order. */
export async function hashOfPatches(patches: readonly Patch[]): Promise<string> {
  const contents = await Promise.all(
    patches.map(async ({ name, path }) => [name, await readFile(path, 'utf8')]),
  )
  return sha256(JSON.stringify(contents))
}

/**
 * Applies a patch to a source tree.
 *
 * @throws RedisBuildError (PATCH_REJECTED) that names the patch and every hunk that fails; the other hunks are
 *   applied.
 */
export async function applyPatch(
  tree: string,
  { name, path }: Patch,
  { env, signal }: { env: NodeJS.ProcessEnv; signal?: AbortSignal },
): Promise<void> {
  const options = { cwd: tree, env: apartFromOurRepository(tree, env), ...(signal && { signal }) }
  const git = (...args: string[]) => runCommand('git', ['apply', ...args, path], options)
  const { code } = await git('--whitespace=nowarn')
  if (code === 0) return
  const { stderr } = await git('--whitespace=nowarn', '--reject')
  const failed = [...stderr.matchAll(/^error: patch failed: (.+):(\d+)$/gm)].map(
    ([, file, line]) => `\n  ${file}, hunk @@ -${line}`,
  )
  throw new RedisBuildError(
    'PATCH_REJECTED',
    `The patch ${name} does not apply${failed.length > 0 ? ' to' : ''}:${failed.join('')}\n\n${stderr.trim()}\n(${path})`,
  )
}

/**
 * An environment in which git does not find our repository above the source tree. Otherwise `git apply` would
 * silently skip every file, and the build of Redis would contain our commit id.
 */
export function apartFromOurRepository(tree: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return plainEnvironment(env, { GIT_CEILING_DIRECTORIES: dirname(tree) })
}
