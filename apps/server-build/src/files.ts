import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

/** Prefix of folders that are being filled. A process that holds the lock may remove such folders. */
export const unfinished = '.tmp-'

/** SHA-256 of a file, in hex. */
export async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** The names in a folder, sorted; empty if the folder does not exist. */
export async function namesIn(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).sort()
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

/** The content of a JSON file; undefined if the file is missing or incomplete. */
export async function readJson<T>(path: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    if (isMissing(error) || error instanceof SyntaxError) return undefined
    throw error
  }
}

export async function writeJson(path: string, value: unknown): Promise<void> {
  await writeFile(path, `${JSON.stringify(value, null, 2)}\n`)
}

/** Removes what interrupted processes left. The caller must hold the lock. */
export async function removeUnfinished(directory: string): Promise<void> {
  for (const name of await namesIn(directory)) {
    if (name.startsWith(unfinished)) {
      await rm(join(directory, name), { recursive: true, force: true })
    }
  }
}

/** The size of a file, or of all files in a folder, in bytes. */
export async function sizeOf(path: string): Promise<number> {
  const own = await stat(path).catch(() => undefined)
  if (!own) return 0
  if (!own.isDirectory()) return own.size
  const names = await namesIn(path)
  const sizes = await Promise.all(names.map((name) => sizeOf(join(path, name))))
  return sizes.reduce((sum, size) => sum + size, 0)
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
