import { rename, rm, stat, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'

/** A file that appears, complete, when there is something to put into it. */
export interface OutputFile {
  readonly path: string
  /** Writes the file aside and moves it into place, so that no reader sees half of it. */
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
  const attempt = async (work: () => Promise<unknown>) => {
    try {
      await work()
    } catch (error) {
      await rm(draft, { force: true }).catch(() => {})
      throw new Problem(`${option} ${name} cannot be written: ${messageOf(error)}.`)
    }
  }
  await attempt(async () => {
    const found = await stat(path).catch(() => null)
    if (found?.isDirectory()) throw new Error('it is a folder')
    await writeFile(draft, '')
    await rm(draft)
  })
  return {
    path,
    save: (text) =>
      attempt(async () => {
        await writeFile(draft, text, { flush: true })
        await rename(draft, path)
      }),
  }
}
