import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Transport } from './address.ts'
import { accepts } from './ports.ts'
import { isAlive, listenersOn } from './processes.ts'

/** How other programs find a running `npm start`, which removes the record when it ends. */
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
  apis: { variant: string; url: string; pid: number }[]
}

/** Writes the record atomically. */
export async function writeRecord(path: string, record: StackRecord): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}`
  await writeFile(draft, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 })
  await rename(draft, path)
}

/** Removes the record if it is that of this process. */
export async function removeRecord(path: string): Promise<void> {
  if ((await readRecord(path))?.pid === process.pid) await rm(path, { force: true })
}

/** The record of a stack, running or not. Null if there is none, or none that is valid. */
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
 * The record of a stack that runs. Process ids are reused, so one of its APIs must accept
 * connections, too.
 */
export async function runningStack(path: string): Promise<StackRecord | null> {
  const record = await readRecord(path)
  if (!record || !isAlive(record.pid)) return null
  const answering = await Promise.all(record.apis.map(({ url }) => answers(url)))
  return answering.includes(true) ? record : null
}

/** A program that still runs although its stack was killed. */
export interface LeftBehind {
  what: string
  pid: number
}

/**
 * The programs of a killed stack that still run: the process has the recorded id and accepts
 * connections at the recorded address.
 */
export async function leftBehind(path: string): Promise<LeftBehind[]> {
  const record = await readRecord(path)
  if (!record || isAlive(record.pid)) return []
  const programs = record.apis.map(({ variant, url, pid }) => ({
    what: `the ${variant} API`,
    url,
    pid,
  }))
  const { pid, url } = record.redis
  const all = pid === null ? programs : [...programs, { what: 'Redis', url, pid }]
  const runs = await Promise.all(all.map(({ url, pid }) => isAlive(pid) && isBehind(url, pid)))
  return all.filter((_, index) => runs[index]).map(({ what, pid }) => ({ what, pid }))
}

/** Whether this process accepts connections at an address. */
async function isBehind(url: string, pid: number): Promise<boolean> {
  const { protocol, port } = new URL(url)
  const holders = protocol === 'unix:' ? [] : await listenersOn(Number(port))
  // Where the holders are unknown, anything that accepts connections there counts.
  return holders.length === 0 ? await answers(url) : holders.some((holder) => holder.pid === pid)
}

function answers(url: string): Promise<boolean> {
  const { protocol, hostname, port, pathname } = new URL(url)
  if (protocol === 'unix:') return accepts({ path: decodeURIComponent(pathname) })
  return accepts({ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port) })
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
