import { readFileSync } from 'node:fs'

/**
 * Reads a secret from the file that a setting names, and trims white space.
 *
 * @throws Error that names the setting and the file, if it cannot be read or is empty.
 */
export function secretIn(setting: string, path: string): string {
  try {
    const secret = readFileSync(path, 'utf8').trim()
    if (secret === '') throw new Error(`${path} is empty`)
    return secret
  } catch (error) {
    throw new Error(`${setting} cannot be read: ${(error as Error).message}`) // includes the path
  }
}
