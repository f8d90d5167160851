import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

/** What a folder of ours is called while it is being filled; anybody who holds the lock may remove it. */
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

/** The names in a folder, sorted; none when there is no such folder. */
export async function namesIn(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).sort()
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

/** The content of a JSON file of ours; undefined when there is none, or only part of one. */
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

/** Removes what an interrupted process left. Only for a process that holds the lock. */
export async function removeUnfinished(directory: string): Promise<void> {
  for (const name of await namesIn(directory)) {
    if (name.startsWith(unfinished)) {
      await rm(join(directory, name), { recursive: true, force: true })
    }
  }
}

/** Bytes that a file or a folder's files take. */
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
