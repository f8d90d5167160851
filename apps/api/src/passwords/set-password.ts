import { lstat, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { MAX_PASSWORD_LENGTH } from '../schemas.ts'
import { hashPassword } from './hash.ts'
import { newPassword } from './prompt.ts'
import { checkName, normalizedName, UsersFile } from './users-file.ts'

const MIN_PASSWORD_LENGTH = 8

const usage = `Usage: npm run set-password -- FILE NAME

Adds a user to a users file (setting USERS_FILE of the API), or changes the user's password. Prompts for the
password; if standard input is not a terminal, reads its first line instead. To remove a user, delete the
line in the file.

The API reads a changed file at the next login. Existing sessions stay valid.
`

interface Existing {
  /** Empty if there is no file. */
  text: string
  mode: number
  owner?: { uid: number; gid: number }
}

async function existing(path: string): Promise<Existing> {
  const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  if (!stats) return { text: '', mode: 0o600 }
  await UsersFile.open(path) // throws if it is malformed
  const { mode, uid, gid } = stats
  const text = (await readFile(path, 'utf8')).replace(/^\ufeff/, '')
  return { text, mode: mode & 0o777, owner: { uid, gid } }
}

/**
 * Resolves symbolic links. Returns the path itself if the file does not exist.
 *
 * @throws Error if the path is a link to a missing file.
 */
async function fileBehind(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    const link = await lstat(path).catch(() => undefined)
    if (link) throw new Error(`${path} is a symbolic link to a file that does not exist`)
    return path
  }
}

/**
 * Replaces the file atomically: writes a new file next to it and renames it. The new file is also the lock
 * against concurrent changes.
 */
async function changeFile(path: string, change: (text: string) => string): Promise<void> {
  const temporary = `${path}.new`
  const file = await open(temporary, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
    throw new Error(
      `${temporary} exists: another set-password is running or was killed; delete the file if none is running`,
    )
  })
  try {
    const { text, mode, owner } = await existing(path)
    await file.writeFile(change(text))
    if (owner) await file.chown(owner.uid, owner.gid)
    await file.chmod(mode)
    await file.sync()
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary)
    throw error
  } finally {
    await file.close()
  }
}

/** Replaces the user's line, or appends it. */
function withLine(text: string, name: string, line: string): string {
  const lines = text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/)
  const nameIn = (other: string) =>
    normalizedName(other.slice(0, Math.max(0, other.lastIndexOf(':'))))
  const index = lines.findIndex((other) => nameIn(other) === name)
  lines[index < 0 ? lines.length : index] = line
  return `${lines.join('\n')}\n`
}

async function setPassword(path: string, user: string): Promise<string> {
  const name = normalizedName(user)
  checkName(name)
  const file = await fileBehind(path)
  await existing(file) // report an invalid file before the prompt
  const password = await newPassword(`Password for ${name}: `, 'Repeat the password: ')
  const { length } = [...password]
  if (length < MIN_PASSWORD_LENGTH || length > MAX_PASSWORD_LENGTH) {
    throw new Error(
      `the password must have ${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters`,
    )
  }
  const line = `${name}:${await hashPassword(password)}`
  await changeFile(file, (text) => withLine(text, name, line))
  return `Set the password of ${name} in ${path}.`
}

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { help: { type: 'boolean', short: 'h' } },
  })
  const [path, name, ...more] = positionals
  if (values.help) process.stdout.write(usage)
  else if (path === undefined || name === undefined || more.length > 0) throw new Error(usage)
  else process.stdout.write(`${await setPassword(path, name)}\n`)
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}
