import { createReadStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import * as tar from 'tar'
import xz from 'xz-decompress'

/**
 * Unpacks a `.tar.gz` into a folder, without the archive's own top folder. The tools of the system
 * (tar, xz) are not needed.
 *
 * @throws when the archive is damaged.
 */
export async function unpackTarGz(archive: string, into: string): Promise<void> {
  await mkdir(into, { recursive: true })
  await tar.extract({ file: archive, cwd: into, strip: 1, strict: true })
}

/** Unpacks a `.tar.xz` into a folder, with its own folders. */
export async function unpackTarXz(archive: string, into: string): Promise<void> {
  await mkdir(into, { recursive: true })
  const compressed = Readable.toWeb(createReadStream(archive)) as ReadableStream<Uint8Array>
  const plain = Readable.fromWeb(new xz.XzReadableStream(compressed))
  await pipeline(plain, tar.extract({ cwd: into, strict: true }))
}

/**
 * The version that a source archive of Redis says it is, read from its `src/version.h`.
 *
 * @returns undefined when it is no such archive.
 */
export async function redisVersionIn(archive: string): Promise<string | undefined> {
  const chunks: Buffer[] = []
  try {
    await tar.list({
      file: archive,
      filter: (path) => /^[^/]+\/src\/version\.h$/.test(path),
      onReadEntry: (entry) => void entry.on('data', (chunk) => chunks.push(chunk)),
    })
  } catch {
    return undefined
  }
  const header = Buffer.concat(chunks).toString()
  return /^#define REDIS_VERSION "([^"]+)"/m.exec(header)?.[1]
}
