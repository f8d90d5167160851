import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import type { RedisFacts } from '../src/redis-info.ts'
import type { RunningPrograms } from '../src/stack.ts'
import type { OwnRedis } from '../src/stack-redis.ts'
import { banner } from '../src/start/banner.ts'
import type { StartSettings } from '../src/start/settings.ts'
import { defaultSettings } from './support/settings.ts'

// The banner of a running stack, and its commands: start.redis.test.ts.

const facts: RedisFacts = { version: '8.0.6', build: null, ioThreads: 2, pid: 2 }

function printed(given: Partial<StartSettings>, nodes?: RunningPrograms['redis']['nodes']): string {
  const server = { url: '', transport: 'tcp', build: '', pid: 2, socket: '/state/run/redis.sock' }
  const stack = {
    redis: { ...server, ...(nodes && { nodes }) } as RunningPrograms['redis'],
    apis: [],
  }
  return stripVTControlCharacters(banner(stack, facts, { ...defaultSettings, ...given }))
}

test('lists the nodes of a cluster, each primary with its replicas, without passwords', () => {
  const { build, port, secrets, directory } = defaultSettings.redis as OwnRedis
  const node = (port: number, replicaOf: string | null) => ({
    url: `redis://operator:secret@127.0.0.1:${port}`,
    pid: port,
    replicaOf,
  })
  const nodes = [node(7000, '127.0.0.1:7003'), node(7001, null), node(7003, null)]
  const text = printed({ redis: { kind: 'cluster', build, port, secrets, directory } }, nodes)
  expect(text).toContain('127.0.0.1:7001, replica none\n')
  expect(text).toContain('127.0.0.1:7003, replica 127.0.0.1:7000\n')
  expect(text).not.toContain('secret@')
})

test('fits 80 columns, except for the commands to copy', () => {
  const lines = printed({}).split('\n')
  expect(lines.filter((line) => line.length > 80 && !line.includes('curl'))).toEqual([])
  expect(lines.join('\n')).toContain('2 I/O threads')
})

test('marks a Redis that is not patched, and hides its password', () => {
  const redis = { kind: 'foreign', url: 'redis://me:secret@127.0.0.1:6379' } as const
  const foreign = printed({ redis })
  expect(foreign).toContain('redis://127.0.0.1:6379 (REDIS_URL), NOT the patched build')
  expect(foreign).not.toContain('secret')
  const installed = printed({ installed: '/usr/bin/redis-server' })
  expect(installed).toContain('/usr/bin/redis-server (REDIS_SERVER), NOT the patched build')
})
