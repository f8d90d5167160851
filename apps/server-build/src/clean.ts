import { rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type BuildName, buildNames } from './builds.ts'
import { namesIn, removeUnfinished, sizeOf } from './files.ts'
import type { Job } from './job.ts'
import { locked } from './lock.ts'

export interface Removed {
  path: string
  bytes: number
}

/**
 * Removes builds and their compiler logs; without names, all builds and the cached sources. Never removes
 * databases (`redis/data`).
 *
 * @throws RedisBuildError (BUSY) while another process is building.
 */
export async function clean(job: Job, builds: readonly BuildName[]): Promise<Removed[]> {
  return await locked(
    job,
    async ({ home }) => {
      await removeUnfinished(home.sources)
      await removeUnfinished(home.builds)
      const paths = [
        ...(await ofBuilds(home.builds, builds)),
        ...(await ofBuilds(home.logs, builds)),
        ...(builds.length === 0 ? [home.sources, home.currentSource] : []),
      ]
      const removed = await Promise.all(paths.map(remove))
      return removed.filter(({ bytes }) => bytes > 0)
    },
    { wait: false },
  )
}

async function ofBuilds(directory: string, builds: readonly BuildName[]): Promise<string[]> {
  const wanted = builds.length === 0 ? buildNames : builds
  const paths = (await namesIn(directory)).map((name) => join(directory, name))
  // `patched` includes patched@0005.
  const starts = wanted.flatMap((build) => [`${build}-`, `${build}@`])
  return paths.filter((path) => starts.some((start) => basename(path).startsWith(start)))
}

async function remove(path: string): Promise<Removed> {
  const bytes = await sizeOf(path)
  await rm(path, { recursive: true, force: true })
  return { path, bytes }
}
