import { execFile } from 'node:child_process'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startRelay } from '@onetrip/stack/relay/process.ts'
import { send } from '@onetrip/stack/testing/audit/client.ts'
import type { Viewer } from '@onetrip/stack/testing/audit/ledger.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { logIn } from '@onetrip/stack/testing/viewing.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { type FaultServer, startServer } from '../../server-build/faults/server.ts'
import { sharedLibrary } from '../../server-build/faults/shared-library.ts'
import { patchedServer } from '../../server-build/test/real-redis.ts'
import { apiProcessForThisTest } from '../test/api-process.ts'

const config = { appendonly: 'yes', appendfsync: 'everysec' }

function adminOf({ port }: FaultServer): Redis {
  const admin = new Redis(port, '127.0.0.1', { retryStrategy: null })
  admin.on('error', () => {}) // the server is killed
  onTestFinished(() => admin.disconnect())
  return admin
}

interface Options {
  durable: string
  users: number
  env?: NodeJS.ProcessEnv
  deadlineMs?: number
  /** Before the API starts. */
  prepare?(server: FaultServer): Promise<unknown>
}

/** A Redis with an API and users, whose logins are on disk. */
async function loggedIn({ durable, users, env = {}, deadlineMs = 20_000, prepare }: Options) {
  const directory = await temporaryFolder()
  const server = await startServer(await patchedServer(), config, { directory, env })
  await prepare?.(server)
  const { url } = await apiProcessForThisTest({
    REDIS_URL: `redis://127.0.0.1:${server.port}`,
    REDIS_DEADLINE_MS: String(deadlineMs),
    DURABLE_ENDS: durable,
    JANITOR_INTERVAL_SECONDS: '0',
  })
  const viewers = await logIn(url, users)
  const admin = adminOf(server)
  await admin.set('last', 'write')
  expect(await admin.call('WAITAOF', 1, 0, 20_000)).toEqual([1, expect.any(Number)])
  const logout = async (viewer: Viewer) => {
    const { outcome, answer } = await send(url, { path: '/logout', token: viewer.token })
    return { viewer, answer, acknowledged: outcome === 'acknowledged' }
  }
  const kill = async () => {
    server.program.signal('SIGKILL')
    await server.program.exited
  }
  return { server, directory, viewers, logout, kill }
}

/** How many of the acknowledged logouts have been undone. */
async function undone(
  server: FaultServer,
  logouts: readonly { viewer: Viewer; acknowledged: boolean }[],
) {
  const ended = logouts.filter(({ acknowledged }) => acknowledged)
  const ids = ended.map(({ viewer }) => viewer.id)
  const users = ids.length === 0 ? [] : await adminOf(server).hmget('login:', ...ids)
  const count = users.filter((user) => user !== null).length
  console.log(`${count} of ${ended.length} acknowledged logouts were undone`)
  return { acknowledged: ended.length, undone: count }
}

test.for([
  ['no', (undone: number) => undone > 240],
  ['disk', (undone: number) => undone === 0],
] as const)('a power cut with a slow disk, DURABLE_ENDS=%s', async ([durable, isExpected]) => {
  const env = { LD_PRELOAD: await sharedLibrary('power-cut.c'), FSYNC_MS: '500' }
  const { directory, viewers, logout, kill } = await loggedIn({ durable, users: 480, env })
  const logouts = await Promise.all(viewers.map(logout))
  await kill()
  const restarted = await startServer(await patchedServer(), config, { directory })
  const result = await undone(restarted, logouts)
  expect(result).toEqual({ acknowledged: 480, undone: expect.toSatisfy(isExpected) })
})

test.for([
  ['no', { acknowledged: 1, undone: 1 }],
  ['disk', { acknowledged: 0, undone: 0 }],
] as const)('a full disk, DURABLE_ENDS=%s', async ([durable, expected]) => {
  const env = { LD_PRELOAD: await sharedLibrary('power-cut.c') }
  const bed = await loggedIn({ durable, users: 8, env })
  const folder = join(bed.directory, 'appendonlydir')
  const [file = ''] = (await readdir(folder)).filter((name) => name.endsWith('.incr.aof'))
  const { size } = await stat(join(folder, file))
  const limit = ['--pid', String(bed.server.program.pid), `--fsize=${size}`]
  await promisify(execFile)('prlimit', limit)
  const logouts = []
  for (const viewer of bed.viewers) logouts.push(await bed.logout(viewer))
  await bed.kill()
  const restarted = await startServer(await patchedServer(), config, { directory: bed.directory })
  expect(await undone(restarted, logouts)).toEqual(expected)
  expect(logouts.at(0)?.answer).toBe(durable === 'disk' ? 'ONETRIP_NOT_DURABLE' : '204')
  expect(logouts.at(-1)?.answer).toBe('ONETRIP_REFUSED')
})

test.for([
  ['no', { acknowledged: 48, undone: 24 }],
  ['replicas', { acknowledged: 24, undone: 0 }],
] as const)(
  'a failover to a replica that was cut off, DURABLE_ENDS=%s',
  async ([durable, expected]) => {
    const replica = await startServer(await patchedServer(), config)
    let stall = async (): Promise<unknown> => expect.fail()
    const prepare = async ({ port }: FaultServer) => {
      const relay = await startRelay({ to: `127.0.0.1:${port}` })
      onTestFinished(() => relay.stop())
      stall = () => relay.command('stall')
      const admin = adminOf(replica)
      await admin.replicaof('127.0.0.1', Number(relay.address.split(':')[1]))
      await expect.poll(() => admin.info('replication')).toContain('master_link_status:up')
    }
    const bed = await loggedIn({ durable, users: 48, deadlineMs: 2_000, prepare })
    const before = await Promise.all(bed.viewers.slice(0, 24).map(bed.logout))
    if (durable === 'no') {
      const [ended] = before
      const id = ended?.viewer.token.split('.')[0] ?? ''
      await expect.poll(() => adminOf(replica).hexists('login:', id)).toBe(0)
      await expect.poll(() => adminOf(replica).hlen('login:')).toBe(24)
    }
    await stall()
    const after = await Promise.all(bed.viewers.slice(24).map(bed.logout))
    await bed.kill()
    await adminOf(replica).replicaof('NO', 'ONE')
    expect(await undone(replica, [...before, ...after])).toEqual(expected)
  },
)
