import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { startRedis } from '@onetrip/stack/start-redis.ts'
import { audit } from '@onetrip/stack/testing/audit/audit.ts'
import { send } from '@onetrip/stack/testing/audit/client.ts'
import { Ledger } from '@onetrip/stack/testing/audit/ledger.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { apiProcessForThisTest } from '../test/api-process.ts'
import { answered, startTestbed } from './testbed.ts'

const script = fileURLToPath(new URL('../../server-build/container/backup.sh', import.meta.url))

/** Runs the script and writes its standard output to a file. */
async function backUp(data: string, to: string): Promise<void> {
  const child = spawn('sh', [script, data], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  await pipeline(child.stdout, createWriteStream(to))
  expect(await exited).toEqual([0, null])
}

/** Starts a new Redis with the data of a backup. Stops it when the current test ends. */
async function restored(backup: string) {
  const directory = join(await temporaryFolder(), 'data')
  await mkdir(directory)
  const [code] = await once(spawn('tar', ['-xf', backup, '-C', directory]), 'exit')
  expect(code).toBe(0)
  const socket = join(directory, 'redis.sock')
  const program = await startRedis({ socket, directory })
  onTestFinished(async () => void (await program.stop()))
  const admin = new Redis(socket)
  onTestFinished(() => admin.disconnect())
  return { socket, admin }
}

// docs/runbook.md, "Backup and restore".
test('a backup under load and during an AOF rewrite contains all earlier sessions and views', async () => {
  const { redis, admin, viewing, settle } = await startTestbed()
  const data = join(redis.socket, '..')
  const folder = await temporaryFolder()
  for (let turn = 0; turn < 5; turn++) {
    await viewing.next(answered('200'))
    const before = viewing.views.length
    await admin.bgrewriteaof()
    const file = join(folder, `${turn}.tar`)
    await backUp(data, file)
    await expect.poll(() => admin.info('persistence')).toContain('aof_rewrite_in_progress:0')
    const copy = await restored(file)
    // The copy may contain views that were answered or sent after the backup started.
    const since = viewing.views.slice(before)
    const ledger = Ledger.of(viewing.views.slice(0, before))
    for (const view of since) ledger.record({ ...view, outcome: 'unknown' })
    const viewers = new Set(viewing.views.map(({ viewer }) => viewer))
    for (const viewer of viewers) {
      for (let item = 0; item < 20; item++) {
        ledger.record({ viewer, item: `item-${item}`, outcome: 'unknown' }) // in flight
      }
    }
    expect((await audit(copy.admin, ledger)).discrepancies).toEqual([])
  }
  expect(await readdir(data)).not.toContainEqual(expect.stringContaining('backup.'))
  await settle()
})

test('sessions are valid on a restored Redis', async () => {
  const { redis, viewing } = await startTestbed()
  const view = await viewing.next(answered('200'))
  const file = join(await temporaryFolder(), 'backup.tar')
  await backUp(join(redis.socket, '..'), file)
  const copy = await restored(file)
  const { url } = await apiProcessForThisTest({ REDIS_URL: `unix://${copy.socket}` })
  const { user, token } = view.viewer
  const me = await send<{ user: string }>(url, { method: 'GET', path: '/me', token })
  expect(me.body).toMatchObject({ user })
  const again = await send<{ views: number }>(url, { path: '/views', token, body: { item: 'new' } })
  expect(again.body).toMatchObject({ views: 1 })
})

test('a folder without an append-only file is rejected', async () => {
  const child = spawn('sh', [script, await temporaryFolder()], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  expect(await text(child.stderr)).toContain("with 'appendonly yes'")
})
