import { access, constants, open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'

/** A file that appears, complete, when there is something to put into it. */
export interface OutputFile {
  readonly path: string
  /**
   * Writes the file aside and moves it into place, so that no reader sees half of it; it is on the disk
   * then, whatever happens to this process or to the machine.
   */
  save(text: string): Promise<void>
}

/**
 * Makes sure that a file can be written, before the work for its content begins.
 *
 * @param option the one that names the file, for the message: `--json`.
 * @throws Problem when it cannot.
 */
export async function outputFile(option: string, name: string): Promise<OutputFile> {
  const path = resolve(name)
  const draft = `${path}.${process.pid}.tmp`
  const folder = dirname(path)
  const unusable = (why: string) => new Problem(`${option} ${name} cannot be written: ${why}.`)
  if ((await stat(path).catch(() => null))?.isDirectory()) throw unusable('it is a folder')
  const found = await stat(folder).catch(() => null)
  if (!found) throw unusable(`there is no folder ${folder}`)
  if (!found.isDirectory()) throw unusable(`${folder} is no folder`)
  try {
    await access(folder, constants.W_OK)
    await writeFile(draft, '') // a read-only file system, a full quota
    await rm(draft)
  } catch (error) {
    throw unusable(messageOf(error))
  }
  return {
    path,
    async save(text) {
      try {
        await writeFile(draft, text, { flush: true })
        await rename(draft, path)
        await flushFolder(folder)
      } catch (error) {
        await rm(draft, { force: true })
        throw unusable(messageOf(error))
      }
    },
  }
}

/** Has the names in a folder written to the disk, where the file system can do that. */
async function flushFolder(path: string): Promise<void> {
  const folder = await open(path)
  try {
    await folder.sync().catch(() => {})
  } finally {
    await folder.close()
  }
}
