import { randomBytes } from 'node:crypto'
import { mkdir, open, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sha256 } from './files.ts'

/** The users of `users.acl` that have a password. */
export const userNames = ['api', 'operator'] as const
export type UserName = (typeof userNames)[number]

const template = fileURLToPath(new URL('../users.acl', import.meta.url))

/** The file with a user's password below a folder of secrets: the same for a container's. */
export function passwordFile(secrets: string, user: UserName): string {
  return join(secrets, user, 'redis-password')
}

/**
 * Makes an ACL file out of `users.acl`. A user's password is what `passwordFile` has; where there is
 * none, one is made. Both are readable by their owner only.
 */
export async function writeUsers(secrets: string, path: string): Promise<void> {
  const passwords = await Promise.all(userNames.map((user) => kept(passwordFile(secrets, user))))
  const hashes = new Map(
    userNames.map((user, index) => [
      `${user.toUpperCase()}_PASSWORD_SHA256`,
      sha256(passwords[index] ?? ''),
    ]),
  )
  const text = aclFile(await readFile(template, 'utf8'), hashes)
  await rm(path, { force: true }) // or it would keep its mode
  await writeFile(path, text, { mode: 0o600 })
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

/** The password in a file, made on first use. */
async function kept(path: string): Promise<string> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  try {
    const file = await open(path, 'wx', 0o600)
    try {
      await file.writeFile(`${randomBytes(32).toString('base64url')}\n`)
    } finally {
      await file.close()
    }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
  const password = (await readFile(path, 'utf8')).trim()
  if (password !== '') return password
  await rm(path) // cut short by a crash while it was written
  return await kept(path)
}
