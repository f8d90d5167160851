import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { accepts } from './ports.ts'
import { isAlive } from './processes.ts'
import type { RunningPrograms } from './stack.ts'

/**
 * The record by which other programs find a running `npm start`, which removes it when it exits. Contains the password
 * of Redis's user `operator`; the file is readable by its owner only.
 */
export interface StackRecord extends RunningPrograms {
  pid: number
  /** ISO 8601. */
  startedAt: string
}

/** Writes the record atomically. */
export async function writeRecord(path: string, record: StackRecord): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}`
  await writeFile(draft, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 })
  await rename(draft, path)
}

/** Removes the record if this process wrote it. */
export async function removeRecord(path: string): Promise<void> {
  if ((await readRecord(path))?.pid === process.pid) await rm(path, { force: true })
}

/** The record of a stack, running or not. Null if it does not exist or is invalid. */
export async function readRecord(path: string): Promise<StackRecord | null> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  try {
    const record: StackRecord = JSON.parse(text ?? '')
    for (const { url } of [record.redis, ...record.apis]) new URL(url)
    return record
  } catch {
    return null
  }
}

/**
 * The record of a running stack. One of its APIs must accept connections, too, because process ids are reused.
 */
export async function runningStack(path: string): Promise<StackRecord | null> {
  const record = await readRecord(path)
  if (!record || !isAlive(record.pid)) return null
  const answering = await Promise.all(record.apis.map(({ url }) => answers(url)))
  return answering.includes(true) ? record : null
}

function answers(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url)
  return accepts({ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port) })
}
