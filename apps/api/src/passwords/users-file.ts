import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { MAX_NAME_LENGTH, NAME_PATTERN } from '@onetrip/session-store'
import { parseHash, verifyPassword } from './hash.ts'

const validName = new RegExp(NAME_PATTERN, 'u')

/** The one spelling of a user's name: Unicode has several for some letters. */
export const normalizedName = (name: string) => name.normalize('NFC')

/**
 * Checks a name that is to be written to a users file.
 *
 * @throws Error that says what is wrong.
 */
export function checkName(name: string): void {
  if (name === '' || name.trim() !== name || name.startsWith('#')) {
    throw new Error('a name must not be empty, start with #, or start or end with white space')
  }
  if ([...name].length > MAX_NAME_LENGTH || !validName.test(name)) {
    throw new Error(
      `a name must have at most ${MAX_NAME_LENGTH} characters and no control characters`,
    )
  }
}

/** A users file: a line `name:$argon2id$…` for each user; empty lines and lines with `#` are ignored. */
export class UsersFile {
  readonly #path: string
  #version = ''
  #users: ReadonlyMap<string, string> = new Map()
  #hashes: readonly string[] = []
  #digest = Buffer.alloc(0)
  /** The reload that runs, or the last one. */
  #running: Promise<void> = Promise.resolve()
  /** The reload that starts after it. */
  #next: Promise<void> | undefined

  private constructor(path: string) {
    this.#path = path
  }

  /** @throws Error that names the file and, if it is malformed, the line. */
  static async open(path: string): Promise<UsersFile> {
    const file = new UsersFile(path)
    await file.reload()
    return file
  }

  /**
   * Reads the file again if it has changed. Reloads run one after another: a slow one cannot overwrite the
   * users of a later one. Callers share the next reload, since the running one may have read an older file.
   *
   * @throws Error as `open`, at each call until the file can be used; the users stay as they were.
   */
  reload(): Promise<void> {
    this.#next ??= this.#running
      .catch(() => {}) // its own callers get the error
      .then(() => {
        this.#next = undefined
        this.#running = this.#readIfChanged()
        return this.#running
      })
    return this.#next
  }

  async #readIfChanged(): Promise<void> {
    const { ino, ctimeNs, size, mode } = await this.#stat()
    const version = `${ino} ${ctimeNs} ${size}`
    if (version === this.#version) return
    // Others could try to guess the passwords, or set their own.
    if ((mode & 0o007n) !== 0n) {
      throw new Error(
        `${this.#path} can be read or written by every user of this machine; run chmod 600 (or 640) on it`,
      )
    }
    const text = await this.#read()
    this.#users = parse(text, this.#path)
    this.#hashes = [...this.#users.values()]
    this.#digest = createHash('sha256').update(text).digest()
    this.#version = version // only now: after an error, the next login tries again
  }

  /**
   * Whether this is the user's password. For a user who does not exist, this takes as long.
   *
   * @throws ApiError `API_OVERLOADED` if too many checks wait.
   */
  async verify(name: string, password: string): Promise<boolean> {
    const hash = this.#users.get(name)
    const valid = await verifyPassword(password, hash ?? this.#hashOfAnother(name))
    return valid && hash !== undefined
  }

  /** The same one each time for a name: hashes of different cost in one file would tell them apart. */
  #hashOfAnother(name: string): string | undefined {
    const index = createHash('sha256').update(this.#digest).update(name).digest().readUInt32BE()
    return this.#hashes[index % this.#hashes.length]
  }

  async #stat() {
    const stats = await stat(this.#path, { bigint: true }).catch(cannotBeRead)
    if (!stats.isFile()) throw new Error(`${this.#path} is not a file`)
    return stats
  }

  async #read(): Promise<string> {
    const bytes = await readFile(this.#path).catch(cannotBeRead)
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    } catch {
      throw new Error(`${this.#path} is not UTF-8 text`)
    }
  }
}

function cannotBeRead(error: Error): never {
  throw new Error(`it cannot be read: ${error.message}`) // Node's message has the path
}

/** @throws Error with the number of the line; no part of a hash is in it. */
function parse(text: string, path: string): Map<string, string> {
  const users = new Map<string, string>()
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue
    try {
      const colon = line.lastIndexOf(':')
      if (colon < 0) throw new Error('there is no colon; it must be name:$argon2id$…')
      const name = normalizedName(line.slice(0, colon))
      checkName(name)
      if (users.has(name)) throw new Error(`the user ${JSON.stringify(name)} is there twice`)
      const hash = line.slice(colon + 1)
      parseHash(hash)
      users.set(name, hash)
    } catch (error) {
      throw new Error(`${path}, line ${index + 1}: ${(error as Error).message}`)
    }
  }
  return users
}
