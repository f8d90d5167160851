import { readFileSync } from 'node:fs'

/**
 * The content of a file that a setting names, without white space around it.
 *
 * @throws Error that names the setting.
 */
export function secretIn(setting: string, path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    // Node's message names the path and what is wrong with it.
    throw new Error(`${setting} cannot be read: ${(error as Error).message}`)
  }
}
