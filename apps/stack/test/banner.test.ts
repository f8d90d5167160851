import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import type { RedisFacts } from '../src/redis-info.ts'
import type { RunningPrograms } from '../src/stack.ts'
import type { OwnRedis } from '../src/stack-redis.ts'
import { banner } from '../src/start/banner.ts'
import type { StartSettings } from '../src/start/settings.ts'
import { defaultSettings } from './support/settings.ts'

const facts: RedisFacts = { version: '8.0.6', build: 'patched-ce8d76da85e6', ioThreads: 2, pid: 2 }

function printed(
  given: Partial<StartSettings>,
  redis = facts,
  nodes?: RunningPrograms['redis']['nodes'],
): string {
  const server = { url: '', transport: 'tcp', build: '', pid: 2, socket: '/state/run/redis.sock' }
  const stack = {
    redis: { ...server, ...(nodes && { nodes }) } as RunningPrograms['redis'],
    apis: [
      { variant: 'batch', url: 'http://127.0.0.1:3000', pid: 3 },
      { variant: 'naive', url: 'http://127.0.0.1:3001', pid: 4 },
    ],
  } as const
  return stripVTControlCharacters(banner(stack, redis, { ...defaultSettings, ...given }))
}

test('shows all addresses and the Redis build', () => {
  const text = printed({})
  expect(text).toContain('http://127.0.0.1:3000')
  expect(text).toContain('http://127.0.0.1:3001')
  expect(text).toContain('8.0.6, build patched-ce8d76da85e6')
  expect(text).toContain('127.0.0.1:6390 and /state/run/redis.sock')
  expect(text).toContain('TCP; 2 I/O threads')
  expect(text).toContain('users api and operator; their passwords are in /state/redis/secrets')
  expect(text).toContain('npm run load')
  expect(text).not.toContain('NOT')
})

test('lists the nodes of a cluster, each primary with its replicas', () => {
  const { build, port, secrets, directory } = defaultSettings.redis as OwnRedis
  const node = (port: number, replicaOf: string | null) => ({
    url: `redis://operator:secret@127.0.0.1:${port}`,
    pid: port,
    replicaOf,
  })
  const text = printed({ redis: { kind: 'cluster', build, port, secrets, directory } }, facts, [
    node(7000, '127.0.0.1:7003'),
    node(7001, null),
    node(7002, null),
    node(7003, null),
    node(7004, '127.0.0.1:7001'),
  ])
  expect(text).toContain('a cluster of 3 primaries')
  expect(text).toContain('127.0.0.1:7001, replica 127.0.0.1:7004\n')
  expect(text).toContain('127.0.0.1:7002, replica none\n')
  expect(text).toContain('127.0.0.1:7003, replica 127.0.0.1:7000\n')
  expect(text).toContain('users api, operator and cluster;')
  expect(text).not.toContain('secret@')
})

test('shows the demo page, and the race if it is on', () => {
  expect(printed({})).toMatch(/Demo page +http:\/\/127\.0\.0\.1:3000\/ {3}with a race/)
  expect(printed({ race: false })).toMatch(/Demo page +http:\/\/127\.0\.0\.1:3000\/\n/)
})

test('marks a foreign Redis as not patched and hides its password', () => {
  const redis = { kind: 'foreign', url: 'redis://me:secret@127.0.0.1:6379' } as const
  const text = printed({ redis }, { ...facts, build: null, ioThreads: 1 })
  expect(text).toContain('redis://127.0.0.1:6379 (REDIS_URL), NOT the patched build')
  expect(text).toContain('1 I/O thread\n')
  expect(text).not.toContain('secret')
})

test('marks an installed Redis as not patched', () => {
  const text = printed({ installed: '/usr/bin/redis-server' }, { ...facts, build: null })
  expect(text).toContain('/usr/bin/redis-server (REDIS_SERVER), NOT the patched build')
})
