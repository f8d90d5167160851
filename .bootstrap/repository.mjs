import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** What a newcomer is told, without a stack. */
export class Problem extends Error {}

/** @param {string} path */
export function readJson(path) {
  return JSON.parse(readFileSync(join(root, path), 'utf8'))
}

/** @param {unknown} error */
export function codeOf(error) {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
