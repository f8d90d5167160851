import { readFileSync } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Transport } from './address.ts'
import type { Variant } from './api.ts'
import { takesConnections } from './ports.ts'

/** What `npm start` leaves for other programs to find it by. Removed when it ends. */
export interface StackRecord {
  pid: number
  /** ISO 8601. */
  startedAt: string
  redis: {
    /** With credentials where it has any; the file is readable by its owner only. */
    url: string
    transport: Transport
    /** The build that we started, `installed` (REDIS_SERVER) or `foreign` (REDIS_URL). */
    build: string
    /** Null for a foreign Redis. */
    pid: number | null
  }
  apis: { variant: Variant; url: string; pid: number }[]
}

/** Writes the record in one step: a reader sees all of it or nothing. */
export async function writeRecord(path: string, record: StackRecord): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}`
  await writeFile(draft, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 })
  await rename(draft, path)
}

/** Removes the record if it is still that of this process. */
export async function removeRecord(path: string): Promise<void> {
  if ((await readRecord(path))?.pid === process.pid) await rm(path, { force: true })
}

/** The record, whether or not its stack still runs; null when there is none that makes sense. */
export async function readRecord(path: string): Promise<StackRecord | null> {
  try {
    const record: unknown = JSON.parse(await readFile(path, 'utf8'))
    return isRecord(record) ? record : null
  } catch (error) {
    if (error instanceof SyntaxError) return null
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/**
 * The record of a stack that runs now. That a process has the recorded id is not enough (ids are
 * used again): one of its APIs must take connections, too.
 */
export async function runningStack(path: string): Promise<StackRecord | null> {
  const record = await readRecord(path)
  if (!record || !isAlive(record.pid)) return null
  const answering = await Promise.all(record.apis.map(({ url }) => answers(url)))
  return answering.includes(true) ? record : null
}

/**
 * Processes that a stack left behind when it was killed and could not stop them: those of its APIs
 * that still take connections, and its Redis with them.
 */
export async function leftBehind(path: string): Promise<number[]> {
  const record = await readRecord(path)
  if (!record || isAlive(record.pid)) return []
  const found = await Promise.all(
    record.apis.map(async ({ url, pid }) => isAlive(pid) && (await answers(url)) && pid),
  )
  const pids = found.filter((pid) => pid !== false)
  const { redis } = record
  if (pids.length > 0 && redis.pid !== null && isAlive(redis.pid)) pids.push(redis.pid)
  return pids
}

/** Whether a process runs. One that has ended and waits for its parent to notice does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !isZombie(pid)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function isZombie(pid: number): boolean {
  try {
    // The state follows the name, which is in brackets and may contain some itself.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.[0] === 'Z'
  } catch {
    return false // no /proc here, or it is gone by now
  }
}

function answers(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url)
  return takesConnections(hostname.replace(/^\[(.*)\]$/, '$1'), Number(port))
}

function isRecord(value: unknown): value is StackRecord {
  const record = value as Partial<StackRecord> | null
  return (
    Number.isInteger(record?.pid) &&
    typeof record?.startedAt === 'string' &&
    typeof record.redis?.url === 'string' &&
    Array.isArray(record.apis) &&
    record.apis.every(({ url, pid }) => URL.canParse(url) && Number.isInteger(pid))
  )
}
