import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { pack } from '../../../../packages/pack.ts'

/** Builds and packs a package of the folder `packages`. Returns the path of the tarball, which the test removes. */
export function packedForThisTest(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'onetrip-packed-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return pack(name, folder).tarball
}

/** Unpacks a tarball into the `node_modules` of a project. Returns the folder of the package. */
export function installPacked(tarball: string, project: string, name: string): string {
  const folder = join(project, 'node_modules/@onetrip', name)
  mkdirSync(folder, { recursive: true })
  execFileSync('tar', ['-xzf', tarball, '--strip-components=1', '-C', folder])
  return folder
}
