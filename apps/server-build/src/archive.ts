import { createReadStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import * as tar from 'tar'
import xz from 'xz-decompress'

/**
 * Unpacks a `.tar.gz` into a folder, without the archive's top folder. Does not need the system's tar or xz.
 *
 * @throws if the archive is damaged.
 */
export async function unpackTarGz(archive: string, into: string): Promise<void> {
  await mkdir(into, { recursive: true })
  await tar.extract({ file: archive, cwd: into, strip: 1, strict: true })
}

/** Unpacks a `.tar.xz` into a folder, including its top folder. */
export async function unpackTarXz(archive: string, into: string): Promise<void> {
  await mkdir(into, { recursive: true })
  const compressed = Readable.toWeb(createReadStream(archive)) as ReadableStream<Uint8Array>
  const plain = Readable.fromWeb(new xz.XzReadableStream(compressed))
  await pipeline(plain, tar.extract({ cwd: into, strict: true }))
}
