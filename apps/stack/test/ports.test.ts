import { parseRedisUrl } from '@onetrip/session-store'
import { expect, test } from 'vitest'
import { hideCredentials, isLocal, requireOwnHost, unixUrl } from '../src/address.ts'
import { apiUrl } from '../src/api.ts'
import { checkPorts, freePorts, type WantedPort } from '../src/ports.ts'
import { listening } from './support/listening.ts'

const wanted = (port: number, extra: Partial<WantedPort> = {}): WantedPort => ({
  port,
  host: '127.0.0.1',
  what: 'the batch API',
  how: '--port or PORT',
  ...extra,
})

// Repeated, because a program of another test may take one of them in between.
test('free ports are different, free, and below the ephemeral ports', { retry: 3 }, async () => {
  const ports = await freePorts(30)
  expect(new Set(ports).size).toBe(30)
  expect(Math.max(...ports)).toBeLessThan(32_768)
  await checkPorts(ports.map((port) => wanted(port)))
})

test('the error names the port, its purpose and the option that changes it', async () => {
  const [free = 0] = await freePorts(1)
  const taken = await listening()
  const other = { how: '--naive-port' }
  for (const [ports, message] of [
    [
      [wanted(free), wanted(taken, { what: 'Redis', how: '--redis-port' })],
      `${taken}.*Redis.*--redis-port`,
    ],
    [[wanted(free), wanted(free, other)], '--port.*--naive-port'], // two programs, one port
    [[wanted(0, { host: '192.0.2.1' })], '192.0.2.1'], // of another machine
  ] as const) {
    await expect(checkPorts(ports)).rejects.toThrow(new RegExp(message))
  }
})

test('the local URL of an API that listens on all addresses', () => {
  expect(apiUrl('0.0.0.0', 3000)).toBe('http://127.0.0.1:3000')
  expect(apiUrl('::', 3000)).toBe('http://[::1]:3000')
  expect(apiUrl('127.0.0.1', 3000)).toBe('http://127.0.0.1:3000')
})

test.for([
  ['redis://me:secret@localhost:6390/2', true],
  ['http://[::1]:3000', true],
  ['unix:///run/redis.sock', true],
  ['redis://127.0.0.1.example.org', false],
  ['redis://localhost@example.org', false],
  ['http://0.0.0.0:3000', false],
  ['nonsense', false],
] as const)('%s leads to this machine: %s', ([url, local]) => {
  expect(isLocal(url)).toBe(local)
})

test('the URL of any Unix socket', () => {
  for (const path of ['/run/my redis.sock', '/tmp/c#/100 %/why?/redis.sock']) {
    expect(parseRedisUrl(unixUrl(path))).toEqual({ transport: 'unix', options: { path } })
  }
})

test.for([
  ['redis://me:secret@localhost:6390/2', 'redis://localhost:6390/2'],
  ['redis://:sec/ret@@localhost', 'redis://localhost'],
  ['me:secret@localhost', 'localhost'],
  ['unix:///run/redis.sock', 'unix:///run/redis.sock'],
] as const)('%s is shown without user and password', ([url, shown]) => {
  expect(hideCredentials(url)).toBe(shown)
})

test('load on another machine requires --i-own-this-host', () => {
  requireOwnHost('unix:///run/redis.sock', false)
  requireOwnHost('redis://10.0.0.1', true)
  expect(() => requireOwnHost('redis://me:secret@10.0.0.1', false)).toThrow(
    'redis://10.0.0.1 is not this machine. If you own that host, add --i-own-this-host.',
  )
})
