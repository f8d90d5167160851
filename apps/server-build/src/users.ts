import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sha256 } from './files.ts'

/** The users of `users.acl` with a password. */
export const userNames = ['api', 'operator', 'exporter'] as const
/** The users of `cluster.acl`. */
export const clusterUserNames = ['replication', 'cluster'] as const
export type UserName = (typeof userNames | typeof clusterUserNames)[number]

const template = fileURLToPath(new URL('../users.acl', import.meta.url))
const clusterTemplate = fileURLToPath(new URL('../cluster.acl', import.meta.url))

/** The file with the password of a user in a folder of secrets. Containers use the same layout. */
export function passwordFile(secrets: string, user: UserName): string {
  return join(secrets, user, 'redis-password')
}

/**
 * The content of an ACL file: `users.acl`, for a node of a cluster with `cluster.acl`. Passwords are read from
 * `passwordFile`, which is created, readable by its owner only, if it does not exist.
 */
export async function users(secrets: string, cluster = false): Promise<string> {
  const names = cluster ? [...userNames, ...clusterUserNames] : userNames
  const passwords = await Promise.all(
    names.map((user) => storedPassword(passwordFile(secrets, user))),
  )
  const hashes = new Map(
    names.map((user, index) => [
      `${user.toUpperCase()}_PASSWORD_SHA256`,
      sha256(passwords[index] ?? ''),
    ]),
  )
  let text = await readFile(template, 'utf8')
  // CONFIG GET would show the password of the user replication.
  if (cluster) text = text.replace(' +config|get', '') + (await readFile(clusterTemplate, 'utf8'))
  return aclFile(text, hashes)
}

/** Writes an ACL file, readable by its owner only; see `users`. */
export async function writeUsers(secrets: string, path: string, cluster = false): Promise<void> {
  const text = await users(secrets, cluster)
  await rm(path, { force: true }) // an existing file would keep its mode
  await writeFile(path, text, { mode: 0o600 })
}

/**
 * Converts the template to an ACL file: one line per user, no comments, each `@NAME@` replaced.
 *
 * @throws Error if a value of the template is missing.
 */
function aclFile(text: string, values: ReadonlyMap<string, string>): string {
  const lines: string[] = []
  for (const line of text.split('\n')) {
    if (line.trim() === '' || line.trimStart().startsWith('#')) continue
    if (line.startsWith(' ')) lines.push(`${lines.pop() ?? ''}${line}`)
    else lines.push(line)
  }
  return `${lines.join('\n')}\n`.replaceAll(/@([A-Z0-9_]+)@/g, (_, name: string) => {
    const value = values.get(name)
    if (value !== undefined) return value
    throw new Error(`users.acl contains @${name}@, but there is no value for it`)
  })
}

/** The password in a file, generated on first use. Servers that start at the same time get the same one. */
async function storedPassword(path: string): Promise<string> {
  const password = (await readFile(path, 'utf8').catch(unlessAbsent))?.trim()
  if (password) return password
  if (password === '') await rm(path, { force: true }) // left empty by a crash
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  await writeFile(draft, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600 })
  try {
    await link(draft, path) // unlike rename, fails if another process was faster
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(draft)
  }
  return await storedPassword(path)
}

function unlessAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
