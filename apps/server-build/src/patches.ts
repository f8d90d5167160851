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

/** Our patches, or another folder of the same shape (`REDIS_PATCHES`), to try patches of one's own. */
export function patchesDirectory(env: NodeJS.ProcessEnv): string {
  return env.REDIS_PATCHES || fileURLToPath(new URL('../patches', import.meta.url))
}

/** The patches that a series file names, in order. A line beginning with `#` is a comment. */
async function readSeries(series: string): Promise<Patch[]> {
  const text = await readFile(series, 'utf8')
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((name) => ({ name, path: join(dirname(series), name) }))
}

/**
 * The patches of a build of ours. The tools have none.
 *
 * @throws RedisBuildError (USAGE) when the folder has no series for it, or the series no such patch.
 */
export async function patchesOf(build: BuildName, directory: string): Promise<Patch[]> {
  if (build === 'tools') return []
  const [name, last] = build.split('@')
  const series = join(directory, `${name}.series`)
  const patches = await readSeries(series).catch((error) => {
    throw new RedisBuildError(
      'USAGE',
      `${series} cannot be read, which names the patches of ${build} (REDIS_PATCHES chooses the folder).`,
      { cause: error },
    )
  })
  if (last === undefined) return patches
  const index = patches.findIndex((patch) => patch.name.startsWith(`${last}-`))
  if (index !== -1) return patches.slice(0, index + 1)
  const numbers = patches.map((patch) => patch.name.split('-', 1)[0]).join(', ')
  throw new RedisBuildError(
    'USAGE',
    `There is no build ${build}: ${series} has no patch ${last}. It has ${numbers}.`,
  )
}

/**
 * The patches that Debian puts on the source, in order.
 *
 * Left out are only those in `debian-packaging/`, which change defaults to Debian's paths. Choosing
 * the security fixes by name instead would miss the one that does not have "CVE" in its name.
 */
export async function debianPatches(debian: string): Promise<Patch[]> {
  const patches = await readSeries(join(debian, 'patches', 'series'))
  return patches.filter(({ name }) => !name.startsWith('debian-packaging/'))
}

/** Hash of the patches' names and contents, in order. */
export async function hashOfPatches(patches: readonly Patch[]): Promise<string> {
  const contents = await Promise.all(
    patches.map(async ({ name, path }) => [name, await readFile(path, 'utf8')]),
  )
  return sha256(JSON.stringify(contents))
}

/**
 * Applies a patch to a source tree.
 *
 * @throws RedisBuildError (PATCH_REJECTED) which names the patch and every hunk that fails; the others
 *   are applied.
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
 * Keeps git from taking the repository that we are in for the one of the source tree: `git apply`
 * would silently skip every file, and the build of Redis would call itself by our commit.
 */
export function apartFromOurRepository(tree: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return plainEnvironment(env, { GIT_CEILING_DIRECTORIES: dirname(tree) })
}
