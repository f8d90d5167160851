import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sha256 } from './files.ts'

/** The users of `users.acl` that have a password. */
export const userNames = ['api', 'operator'] as const
/** Those of `cluster.acl`. */
export const clusterUserNames = ['replication', 'cluster'] as const
export type UserName = (typeof userNames | typeof clusterUserNames)[number]

const template = fileURLToPath(new URL('../users.acl', import.meta.url))
const clusterTemplate = fileURLToPath(new URL('../cluster.acl', import.meta.url))

/** The file with a user's password below a folder of secrets: the same for a container's. */
export function passwordFile(secrets: string, user: UserName): string {
  return join(secrets, user, 'redis-password')
}

/**
 * Makes an ACL file out of `users.acl`, for a node of a cluster out of `cluster.acl`, too. A user's password
 * is in `passwordFile`, which is created if it does not exist. Both are readable by their owner only.
 */
export async function writeUsers(secrets: string, path: string, cluster = false): Promise<void> {
  const names = cluster ? [...userNames, ...clusterUserNames] : userNames
  const passwords = await Promise.all(names.map((user) => kept(passwordFile(secrets, user))))
  const hashes = new Map(
    names.map((user, index) => [
      `${user.toUpperCase()}_PASSWORD_SHA256`,
      sha256(passwords[index] ?? ''),
    ]),
  )
  let text = await readFile(template, 'utf8')
  // CONFIG GET would show the password of the user replication.
  if (cluster) text = text.replace(' +config|get', '') + (await readFile(clusterTemplate, 'utf8'))
  await rm(path, { force: true }) // or it would keep its mode
  await writeFile(path, aclFile(text, hashes), { mode: 0o600 })
}

/**
 * The template as Redis takes it: a line for each user, no comment, each `@NAME@` replaced.
 *
 * @throws Error when the template names a value that is not given.
 */
export function aclFile(text: string, values: ReadonlyMap<string, string>): string {
  const lines: string[] = []
  for (const line of text.split('\n')) {
    if (line.trim() === '' || line.trimStart().startsWith('#')) continue
    if (line.startsWith(' ')) lines.push(`${lines.pop() ?? ''}${line}`)
    else lines.push(line)
  }
  return `${lines.join('\n')}\n`.replaceAll(/@([A-Z0-9_]+)@/g, (_, name: string) => {
    const value = values.get(name)
    if (value !== undefined) return value
    throw new Error(`users.acl names @${name}@, which nothing gives`)
  })
}

/** The password in a file, made on first use. Servers that start at once get the same one. */
async function kept(path: string): Promise<string> {
  const password = (await readFile(path, 'utf8').catch(unlessAbsent))?.trim()
  if (password) return password
  if (password === '') await rm(path, { force: true }) // cut short by a crash while it was written
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  await writeFile(draft, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600 })
  try {
    await link(draft, path) // unlike a rename, it fails where another process was first
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(draft)
  }
  return await kept(path)
}

function unlessAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
