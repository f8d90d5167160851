import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'

/** Name and installed version of an npm package: `redis 6.3.1`. */
export function packageVersion(name: string): string {
  const path = findPackageJSON(name, import.meta.url)
  return path === undefined ? name : `${name} ${JSON.parse(readFileSync(path, 'utf8')).version}`
}
