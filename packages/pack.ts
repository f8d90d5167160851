import { execFileSync } from 'node:child_process'
import { join, resolve } from 'node:path'

/** A package as `npm publish` uploads it. `id` is its name and version. */
export interface Packed {
  id: string
  version: string
  /** Path of the archive. */
  tarball: string
}

/** Builds a package of this folder, and packs it into a folder, which may be missing. */
export function pack(name: string, folder: string): Packed {
  const dist = resolve(folder, name)
  execFileSync(process.execPath, ['build.ts', name, dist], { cwd: import.meta.dirname })
  const options = ['--json', '--ignore-scripts', '--pack-destination', folder]
  const output = execFileSync('npm', ['pack', dist, ...options], { encoding: 'utf8' })
  const [{ id, version, filename }] = JSON.parse(output)
  return { id, version, tarball: join(folder, filename) }
}
