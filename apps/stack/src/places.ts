import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { messageOf, Problem } from './problem.ts'

export const repository = fileURLToPath(new URL('../../../', import.meta.url))

// The limit for the path of a Unix socket is 104 bytes on macOS and 108 on Linux, including the final zero.
const MAX_SOCKET_PATH = 100

/**
 * The files and folders of `npm start`: below `ONETRIP_STATE`, or by default below `ONETRIP_HOME` (default
 * `.onetrip` in the repository), which also has the builds of Redis. With another `ONETRIP_STATE`, a second stack
 * can use the same builds.
 */
export function places(env = process.env) {
  const home = resolve(env.ONETRIP_HOME || join(repository, '.onetrip'))
  const state = resolve(env.ONETRIP_STATE || home)
  return {
    /** Folder of the builds. */
    home,
    /** Folder of the running processes: socket and record. */
    run: join(state, 'run'),
    /** The record of the running stack (see record.ts). */
    record: join(state, 'run', 'stack.json'),
    /** File with the secret with which the APIs sign tokens. */
    secret: join(state, 'session-secret'),
    /** Folder with the passwords of Redis's users. */
    secrets: join(state, 'redis', 'secrets'),
    /** Folder with the data of Redis, one subfolder per build. */
    data: join(state, 'redis', 'data'),
    /** The report of the latest measurement. */
    report: join(state, 'report', 'latest.html'),
    /** Folder of the results of races. */
    results: join(state, 'races'),
  }
}

/**
 * The path of a Unix socket (`name` in `directory`, or in a short temporary folder if that path would be too
 * long), and a function that removes the socket.
 */
export async function socketIn(directory: string, name = 'redis.sock') {
  const path = join(directory, name)
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH) {
    await writableFolder(directory)
    return { path, remove: () => rm(path, { force: true }) }
  }
  const short = await mkdtemp(join(tmpdir(), 'onetrip-'))
  const remove = () => rm(short, { recursive: true, force: true })
  return { path: join(short, name), remove }
}

/**
 * Creates a folder, with those that it is in, and checks that files can be written there. Not `mkdir` with `recursive`,
 * which never ends below /proc.
 *
 * @throws Problem if it cannot be created or written.
 */
export async function writableFolder(path: string): Promise<void> {
  const missing: string[] = []
  for (let folder = path; !existsSync(folder); folder = dirname(folder)) missing.unshift(folder)
  try {
    for (const folder of missing) await mkdir(folder).catch(unlessItExists)
    await rm(await mkdtemp(join(path, '.writable-')), { recursive: true })
  } catch (error) {
    throw new Problem(
      `Cannot write to the folder ${path}: ${messageOf(error)}\nSet ONETRIP_STATE or ONETRIP_HOME to a writable folder.`,
    )
  }
}

const unlessItExists = (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EEXIST') throw error
}

/**
 * Creates a folder for the stack of one measurement, on the same disk as the data of `npm start`, so that the
 * append-only file costs the same.
 *
 * @throws Problem if the folder cannot be created.
 */
export async function temporaryRunFolder(prefix: string): Promise<string> {
  const { run } = places()
  await writableFolder(run)
  return await mkdtemp(join(run, prefix))
}

/** A new secret for signing tokens: 32 random bytes as base64url. */
export const newSecret = (): string => randomBytes(32).toString('base64url')

/**
 * The secret in the file `path`, which is created on first use and readable by its owner only. Tokens stay valid
 * after a restart.
 */
export async function keptSecret(path: string): Promise<string> {
  const kept = existsSync(path) ? (await readFile(path, 'utf8')).trim() : ''
  if (kept.length >= 32) return kept // a shorter one is incomplete after a crash, and has signed no token
  const secret = newSecret()
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, `${secret}\n`, { mode: 0o600 })
  return secret
}
