import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { MAX_NAME_LENGTH, NAME_PATTERN } from '@onetrip/session-store'
import { parseHash, verifyPassword } from './hash.ts'

const validName = new RegExp(NAME_PATTERN, 'u')

/** Unicode has several encodings of some letters; this is one spelling for all of them. */
export const normalizedName = (name: string) => name.normalize('NFC')

/**
 * Checks whether a name is allowed in a users file.
 *
 * @throws Error with the rule that the name breaks.
 */
export function checkName(name: string): void {
  if (name === '' || name.trim() !== name || name.startsWith('#')) {
    throw new Error('a user name must not be empty, start with #, or start or end with white space')
  }
  if ([...name].length > MAX_NAME_LENGTH || !validName.test(name)) {
    throw new Error(
      `a user name must have at most ${MAX_NAME_LENGTH} characters and no control characters`,
    )
  }
}

/**
 * A users file: one line `name:$argon2id$…` per user. Empty lines and lines that start with `#` are ignored.
 */
export class UsersFile {
  readonly #path: string
  #version = ''
  #users: ReadonlyMap<string, string> = new Map()
  #hashes: readonly string[] = []
  #digest = Buffer.alloc(0)
  /** The reload in progress, or the last one. */
  #running: Promise<void> = Promise.resolve()
  /** The reload that starts after `#running`. */
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
   * Reads the file again if it has changed. Reloads run one after another, so that a slow one cannot
   * overwrite the users of a later one. Callers share the next reload; the one in progress may have read an
   * older file.
   *
   * @throws Error as for `open`, at every call until the file is valid. The users loaded before stay valid.
   */
  reload(): Promise<void> {
    this.#next ??= this.#running
      .catch(() => {}) // the callers of that reload get the error
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
    // Other users could attack the hashes, or write hashes of their own passwords.
    if ((mode & 0o007n) !== 0n) {
      throw new Error(
        `${this.#path} is accessible to all users of this machine; run chmod 600 (or 640) on it`,
      )
    }
    const text = await this.#read()
    this.#users = parse(text, this.#path)
    this.#hashes = [...this.#users.values()]
    this.#digest = createHash('sha256').update(text).digest()
    this.#version = version // last, so that the next login retries after an error
  }

  /**
   * Checks a user's password. Takes the same time for a user who does not exist.
   *
   * @throws ApiError `API_OVERLOADED` if too many checks are waiting.
   */
  async verify(name: string, password: string): Promise<boolean> {
    const hash = this.#users.get(name)
    const valid = await verifyPassword(password, hash ?? this.#hashOfAnother(name))
    return valid && hash !== undefined
  }

  /**
   * A hash for a user who does not exist. Always the same one per name: the hashes in a file may differ in
   * cost, and a varying time would reveal that the user does not exist.
   */
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
  throw new Error(`cannot be read: ${error.message}`) // Node's message contains the path
}

/** @throws Error with the line number and without any part of a hash. */
function parse(text: string, path: string): Map<string, string> {
  const users = new Map<string, string>()
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue
    try {
      const colon = line.lastIndexOf(':')
      if (colon < 0) throw new Error('no colon; the format is name:$argon2id$…')
      const name = normalizedName(line.slice(0, colon))
      checkName(name)
      if (users.has(name)) throw new Error(`duplicate user ${JSON.stringify(name)}`)
      const hash = line.slice(colon + 1)
      parseHash(hash)
      users.set(name, hash)
    } catch (error) {
      throw new Error(`${path}, line ${index + 1}: ${(error as Error).message}`)
    }
  }
  return users
}
