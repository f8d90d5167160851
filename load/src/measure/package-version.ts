import { readFile } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'

/** Name and installed version of an npm package: `redis 6.3.1`. */
export async function packageVersion(name: string): Promise<string> {
  const path = findPackageJSON(name, import.meta.url)
  if (path === undefined) return name
  const { version } = JSON.parse(await readFile(path, 'utf8')) as { version: string }
  return `${name} ${version}`
}
