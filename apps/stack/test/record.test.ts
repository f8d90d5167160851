import { stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { keptSecret, socketIn } from '../src/places.ts'
import { freePorts } from '../src/ports.ts'
import {
  readRecord,
  removeRecord,
  runningStack,
  type StackRecord,
  writeRecord,
} from '../src/record.ts'
import { filesIn, temporaryFolder } from '../src/testing/folders.ts'
import { listening } from './support/listening.ts'

const DEAD = 2 ** 22 + 1 // above the largest process id of Linux

function record(port: number, pid = process.pid): StackRecord {
  const url = 'redis://127.0.0.1:6390'
  return {
    pid,
    startedAt: '2026-11-21T04:00:00.000Z',
    redis: { url, transport: 'tcp', build: 'patched', pid: null, socket: null },
    apis: [{ variant: 'pipeline', url: `http://127.0.0.1:${port}`, pid: process.pid }],
  }
}

describe('the record', () => {
  test('is readable by its owner only, equals what was written, and leaves no other file', async () => {
    const folder = await temporaryFolder()
    const path = join(folder, 'run', 'stack.json')
    await writeRecord(path, record(3000))
    expect(await readRecord(path)).toEqual(record(3000))
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await filesIn(folder)).toEqual(['stack.json'])
    await removeRecord(path)
    expect(await filesIn(folder)).toEqual([])
    await writeRecord(path, record(3000, DEAD)) // by another process
    await removeRecord(path)
    expect(await readRecord(path)).not.toBeNull()
  })

  test.for(['', 'null', '[]', '{"pid":1,"redis":{},"apis":[]}'])('is invalid: %s', async (text) => {
    const path = join(await temporaryFolder(), 'stack.json')
    await writeFile(path, text)
    expect(await readRecord(path)).toBeNull()
  })

  test('identifies a running stack, unless its process has exited or another one has the id', async () => {
    const path = join(await temporaryFolder(), 'stack.json')
    expect(await runningStack(path)).toBeNull()
    await writeRecord(path, record(await listening()))
    expect(await runningStack(path)).toMatchObject({ pid: process.pid })
    await writeRecord(path, record(await listening(), DEAD))
    expect(await runningStack(path)).toBeNull()
    const [unused = 0] = await freePorts(1)
    await writeRecord(path, record(unused))
    expect(await runningStack(path)).toBeNull()
  })
})

describe('places', () => {
  test('a secret is generated once, readable by its owner only', async () => {
    const path = join(await temporaryFolder(), 'new', 'session-secret')
    const secret = await keptSecret(path)
    expect(Buffer.from(secret, 'base64url').length).toBeGreaterThanOrEqual(32)
    expect(await keptSecret(path)).toBe(secret)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    await writeFile(path, 'abc') // incomplete
    expect((await keptSecret(path)).length).toBeGreaterThanOrEqual(32)
  })

  test('if the path would be too long, a socket is in a short temporary folder, which is removed', async () => {
    const folder = join(await temporaryFolder(), 'long'.repeat(30))
    const { path, remove } = await socketIn(folder)
    expect(path.length).toBeLessThan(100)
    await writeFile(path, '')
    await remove()
    await expect(stat(join(path, '..'))).rejects.toThrow('ENOENT')
  })
})
