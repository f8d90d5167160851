import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Done } from '../events.ts'

const KEPT = 100

/** The results of the latest 100 races, each in a file. Their ids sort by time. */
export class Results {
  readonly #folder: string

  /** @param folder It is created when the first result is saved. */
  constructor(folder: string) {
    this.#folder = folder
  }

  /** @throws Error if the folder cannot be written. */
  async save(result: Done): Promise<void> {
    await mkdir(this.#folder, { recursive: true })
    await writeFile(this.#pathOf(result.id), JSON.stringify(result))
    const names = (await readdir(this.#folder)).toSorted()
    for (const name of names.slice(0, -KEPT)) await rm(join(this.#folder, name), { force: true })
  }

  /** Undefined if there is no result with this id. */
  async find(id: string): Promise<Done | undefined> {
    if (!/^[\w-]{1,40}$/.test(id)) return undefined // no path
    const text = await readFile(this.#pathOf(id), 'utf8').catch(() => undefined)
    return text === undefined ? undefined : JSON.parse(text)
  }

  #pathOf(id: string): string {
    return join(this.#folder, `${id}.json`)
  }
}
