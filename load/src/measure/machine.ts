import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { cpus, release, totalmem, type } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { repository } from '@onetrip/stack/places.ts'

export type Machine = ReturnType<typeof machine>

/** The hardware, kernel and Node version of this machine. */
export function machine() {
  const cores = cpus()
  return {
    cpu: cores[0]?.model.trim().replaceAll(/\s+/g, ' ') || 'unknown CPU',
    cores: cores.length,
    memoryBytes: totalmem(),
    kernel: `${type()} ${release()}`,
    node: process.version,
  }
}

export interface GitState {
  commit: string
  /** Whether there were uncommitted changes, other than published results. */
  dirty: boolean
}

/** The folder of the published results, in the repository. */
const RESULTS = 'load/results'
export const published = join(repository, RESULTS)

/** The commit of a repository; null without git or outside of a repository (a packed copy). */
export async function gitState(folder = repository): Promise<GitState | null> {
  const git = async (...args: string[]) =>
    (await promisify(execFile)('git', args, { cwd: folder })).stdout.trim()
  try {
    const commit = await git('rev-parse', 'HEAD')
    const changes = await git('status', '--porcelain', '--', '.', `:!${RESULTS}`)
    return { commit, dirty: changes !== '' }
  } catch {
    return null
  }
}

/** Name and installed version of an npm package: `redis 6.3.1`. */
export function packageVersion(name: string): string {
  const path = findPackageJSON(name, import.meta.url)
  return path === undefined ? name : `${name} ${JSON.parse(readFileSync(path, 'utf8')).version}`
}
