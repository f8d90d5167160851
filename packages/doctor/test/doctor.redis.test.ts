import { unixUrl } from '@onetrip/stack/address.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { findingsOf } from '../src/checks.ts'
import type { Finding, Observation } from '../src/finding.ts'
import { Probe } from '../src/probe.ts'
import { type WatchOptions, watch } from '../src/watch.ts'
import { oneByOne, reconnecting, unread } from './clients.ts'

/** Connects the doctor until the end of the test. */
async function doctorOn(socket: string): Promise<Probe> {
  const probe = await Probe.connect(unixUrl(socket))
  onTestFinished(() => probe.close())
  return probe
}

/** Watches for a second. */
async function look(probe: Probe, options: Partial<WatchOptions> = {}): Promise<Observation> {
  const { signal } = new AbortController()
  const usual = { seconds: 1, maxListed: 10_000, stallMs: 60_000, signal }
  return await watch(probe, { ...usual, ...options })
}

/** Watches until there is a finding with `evidence`, because a second may be too short on a busy machine. */
async function find(
  probe: Probe,
  id: string,
  evidence: RegExp,
  options?: Partial<WatchOptions>,
): Promise<Finding> {
  const found: Finding[] = []
  const seen = async () => {
    found.unshift(...findingsOf(await look(probe, options)).filter((one) => one.id === id))
    return found[0]?.evidence.join('\n')
  }
  await expect.poll(seen).toMatch(evidence)
  return found[0] as Finding
}

function adminOf(socket: string): Redis {
  const admin = new Redis(socket)
  onTestFinished(() => admin.disconnect())
  return admin
}

test('finds a client that opens a connection for each command', async () => {
  const { socket } = await redisForThisTest()
  const doctor = await doctorOn(socket)
  reconnecting(socket, 'shop')
  const client = /shop .*on a Unix socket, user default: \d+ short connections? seen/
  const found = await find(doctor, 'connection-churn', client)
  expect(found.saving).toBeGreaterThan(0.2)
})

test('finds a client that waits for each reply', async () => {
  const { socket } = await redisForThisTest()
  const doctor = await doctorOn(socket)
  oneByOne(socket, 'shop')
  const found = await find(doctor, 'one-command-per-trip', /^shop .*last commands get/m)
  expect(found.saving).toBeGreaterThan(0.1)
  expect(found.title).toMatch(/^Clients send 1.0\d commands per round trip/)
  const ids = async () => findingsOf(await look(doctor)).map(({ id }) => id)
  await expect.poll(ids).toEqual(['one-command-per-trip'])
})

test('finds a client that does not read its replies', async () => {
  const { socket } = await redisForThisTest()
  const doctor = await doctorOn(socket)
  await adminOf(socket).set('key', Buffer.alloc(100_000))
  await unread(socket, 'reader', 'key', 100)
  const client = /^reader on a Unix socket.* MB of unread replies, last commands get$/m
  await find(doctor, 'slow-readers', client)
})

test('reports slow commands without their arguments, which may be secret', async () => {
  const { socket } = await redisForThisTest({ config: { 'slowlog-log-slower-than': '1000' } })
  const doctor = await doctorOn(socket)
  const admin = adminOf(socket)
  const script = 'for i = 1, 300000 do redis.call("RPUSH", KEYS[1], i) end'
  await admin.eval(script, 1, 'feed:8e1f-secret')
  await admin.lrange('feed:8e1f-secret', 0, -1)
  const slow = /^LRANGE: 1 time, up to [\d.]+ ms$/m
  const { evidence } = await find(doctor, 'slow-commands', slow, { stallMs: 1 })
  expect(evidence.join('\n')).not.toContain('secret')
})

test('finds connections refused at maxclients', async () => {
  const { socket } = await redisForThisTest({ config: { maxclients: '3' } })
  const admin = adminOf(socket)
  await admin.ping()
  const doctor = await doctorOn(socket)
  oneByOne(socket, 'one')
  await expect.poll(async () => String(await admin.client('LIST'))).toContain('name=one')
  reconnecting(socket, 'another')
  const found = await find(
    doctor,
    'rejected-connections',
    /^[1-9][\d,]* connections? refused during the watch/,
  )
  expect(found.severity).toBe('high')
  await expect(Probe.connect(unixUrl(socket))).rejects.toThrow('If maxclients is reached')
})

test('does not send CLIENT LIST with more connections than the limit', async () => {
  const { socket } = await redisForThisTest()
  const doctor = await doctorOn(socket)
  expect((await look(doctor, { maxListed: 0 })).clients).toBeNull()
  expect(doctor.unseen).toMatchObject([{ command: 'CLIENT LIST' }])
})

test('an interrupt ends the watch immediately', async () => {
  const { socket } = await redisForThisTest()
  const interrupt = new AbortController()
  const watching = look(await doctorOn(socket), { seconds: 3_600, signal: interrupt.signal })
  interrupt.abort()
  await expect(watching).rejects.toThrow('aborted')
})
