import { readFileSync } from 'node:fs'

/**
 * Reads a secret from the file that a setting names, and trims white space.
 *
 * @throws Error that names the setting and the file.
 */
export function secretIn(setting: string, path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new Error(`${setting} cannot be read: ${(error as Error).message}`) // includes the path
  }
}
