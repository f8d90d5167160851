/**
 * Builds, packs and publishes all packages of this folder. The workflow release.yml runs it for a tag:
 *
 *     npm run release -- FOLDER [options of npm publish, such as --dry-run]
 *
 * FOLDER gets the tarballs. All packages are packed before the first is published. A version that npm already has
 * is left out, so that a release that failed halfway can be repeated.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { dirname } from 'node:path'
import { pack } from './pack.ts'

const [, , folder = '', ...options] = process.argv
const { GITHUB_REF_TYPE, GITHUB_REF_NAME } = process.env

if (folder === '') throw new Error('name the folder for the tarballs')
const names = globSync('*/package.json', { cwd: import.meta.dirname }).map(dirname)
const packed = names.map((name) => pack(name, folder))
for (const { id, version } of packed) {
  if (GITHUB_REF_TYPE === 'tag' && GITHUB_REF_NAME !== `v${version}`) {
    throw new Error(
      `The tag is ${GITHUB_REF_NAME}, but this is ${id}: set the version of every package`,
    )
  }
}
for (const { id, tarball } of packed) {
  if (spawnSync('npm', ['view', id, 'version'], { encoding: 'utf8' }).stdout.trim() !== '') {
    console.log(`${id} is on npm already`)
    continue
  }
  execFileSync('npm', ['publish', tarball, '--access=public', ...options], { stdio: 'inherit' })
}
