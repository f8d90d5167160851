import { unixUrl } from '@onetrip/stack/address.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { findingsOf } from '../../src/doctor/doctor.ts'
import type { Finding, Observation } from '../../src/doctor/finding.ts'
import { Probe } from '../../src/doctor/probe.ts'
import { reportOf, terminalReport } from '../../src/doctor/report.ts'
import { type WatchOptions, watch } from '../../src/doctor/watch.ts'
import { oneByOne, pipelining, reconnecting, unread } from './clients.ts'

/** Connects the doctor until the end of the test. */
async function doctorOn(socket: string): Promise<Probe> {
  const probe = await Probe.connect(unixUrl(socket))
  onTestFinished(() => probe.close())
  return probe
}

/** Watches for a second. */
async function look(probe: Probe, options: Partial<WatchOptions> = {}): Promise<Observation> {
  const { signal } = new AbortController()
  const usual = {
    seconds: 1,
    maxListed: 10_000,
    cores: 2,
    stallMs: 60_000,
    showKeys: false,
    signal,
  }
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
  expect(found.evidence[0]).toMatch(
    /^[\d,]+ connections opened and closed in \d\.\d+ s, open for \d/,
  )
  expect(found.saving).toBeGreaterThan(0.2)
  expect(found.remedy).toContain('pool')
})

test('finds a client that waits for each reply', async () => {
  const { socket } = await redisForThisTest()
  const doctor = await doctorOn(socket)
  oneByOne(socket, 'shop')
  const found = await find(doctor, 'one-command-per-trip', /^shop .*such as get/m)
  expect(found.saving).toBeGreaterThan(0.1)
  expect(found.title).toMatch(/^Clients send (1.0\d|0.99) commands per round trip/)
  const ids = async () => findingsOf(await look(doctor)).map(({ id }) => id)
  await expect.poll(ids).toEqual(['one-command-per-trip'])
})

test('finds a client that sends INFO and PING in a loop', async () => {
  const { socket } = await redisForThisTest()
  const get = ['get', 'key']
  pipelining(socket, 'monitor', ['info'], ['ping'], get, get, get)
  const found = await find(
    await doctorOn(socket),
    'chatter',
    /(?=.*INFO [\d.,]+\/s)(?=.*PING [\d.,]+\/s)/,
  )
  expect(found.title).toMatch(/^(3[5-9]|4\d)\.?\d* % of the commands do no work/)
})

test('finds a client that uses transactions for reads', async () => {
  const { socket } = await redisForThisTest()
  pipelining(socket, 'shop', ['multi'], ['get', 'key'], ['get', 'key'], ['exec'])
  const found = await find(await doctorOn(socket), 'transactions', /transactions, none with WATCH/)
  expect(found.title).toMatch(/^(4\d|50)\.\d % of the commands are MULTI and EXEC\.$/)
})

test('reports an upper bound of commands per round trip if scripts run', async () => {
  const { socket } = await redisForThisTest()
  const doctor = await doctorOn(socket)
  const commands = async () => {
    const seen = await look(doctor)
    const report = reportOf(seen, [], { server: '', unseen: [] })
    return /^commands +(.*)$/m.exec(terminalReport(seen, report))?.[1]?.trim()
  }
  expect(await commands()).toMatch(/per round trip$/)
  const script = 'for i = 1, 9 do redis.call("GET", KEYS[1]) end'
  pipelining(socket, 'shop', ['eval', script, '1', 'key'])
  await expect
    .poll(commands)
    .toMatch(/ (9\.\d+|10\.\d) per round trip at most: commands that scripts ran are counted, too$/)
})

test('finds a client that does not read its replies', async () => {
  const { socket } = await redisForThisTest()
  const doctor = await doctorOn(socket)
  await adminOf(socket).set('key', Buffer.alloc(100_000))
  await unread(socket, 'reader', 'key', 100)
  const client = /^reader on a Unix socket.* MB of unread replies, last commands get$/m
  await find(doctor, 'slow-readers', client)
  const { figures } = await look(doctor)
  expect(figures.longestOutput).toBeGreaterThan(1e6)
  expect(figures.clientMemory).toBeGreaterThan(1e6)
})

test('reports slow commands without their arguments, which may be secret', async () => {
  const { socket } = await redisForThisTest({ config: { 'slowlog-log-slower-than': '1000' } })
  const doctor = await doctorOn(socket)
  const admin = adminOf(socket)
  const script = 'for i = 1, 300000 do redis.call("RPUSH", KEYS[1], i) end'
  await admin.eval(script, 1, 'feed:8e1f-secret')
  await admin.lrange('feed:8e1f-secret', 0, -1)
  const slow = /^LRANGE: 1 time, up to [\d.]+ ms$/m
  const { evidence, remedy } = await find(doctor, 'slow-commands', slow, { stallMs: 1 })
  expect(evidence.join('\n')).not.toContain('secret')
  expect(remedy).toContain('LRANGE reads everything: read in pages')
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

test('finds a fork that blocks all clients', async () => {
  const { socket } = await redisForThisTest()
  const doctor = await doctorOn(socket)
  const admin = adminOf(socket)
  await admin.bgsave()
  await expect.poll(() => admin.info('persistence')).toContain('rdb_bgsave_in_progress:0')
  const fork = /^Last fork: [\d.]+ ms, for [\d.]+ MB; 1 fork in/
  await find(doctor, 'persistence-stalls', fork, { stallMs: 0 })
  expect(findingsOf(await look(doctor))).toEqual([])
})

test('finds more I/O threads than cores', async () => {
  const { socket } = await redisForThisTest({ config: { 'io-threads': '3' } })
  const doctor = await doctorOn(socket)
  const found = await find(doctor, 'io-threads-exceed-cores', /^3 I\/O threads .*2 cores/)
  expect(found.remedy).toContain('Set io-threads to 1 or less')
  expect(findingsOf(await look(doctor, { cores: 8 }))).toEqual([])
})

test('finds nothing if clients use pipelines on long-lived connections', async () => {
  const { socket } = await redisForThisTest()
  const doctor = await doctorOn(socket)
  const ten = Array.from({ length: 10 }, () => ['get', 'key'])
  for (const name of ['a', 'b']) pipelining(socket, name, ...ten)
  const commands = async () => {
    const seen = await look(doctor)
    expect(findingsOf(seen)).toEqual([])
    return seen.figures.commands
  }
  await expect.poll(commands).toBeGreaterThan(100)
})
