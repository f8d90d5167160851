import { createRequire } from 'node:module'
import { Cluster, Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { clusterSender, safeClusterOptions } from '../src/cluster/index.ts'
import { createSessionStore, safeRedisOptions } from '../src/core/index.ts'

const require = createRequire(import.meta.url)
const iovalkey = require('iovalkey') as typeof import('ioredis')
const nodeRedis = require('redis') as {
  createClient(): object
  createCluster(options: object): object
}
const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }

const options = { ...safeRedisOptions, lazyConnect: true }
const nodes = [{ host: '127.0.0.1', port: 1 }]
const clusterOptions = { ...safeClusterOptions, lazyConnect: true }

/** A client as ioredis 4 and early versions of 5 create it: without newer options. */
function olderClient(): object {
  const client = new Redis(options)
  Reflect.deleteProperty(client.options, 'blockingTimeoutGrace')
  return client
}

test.each([
  ['node-redis', () => nodeRedis.createClient()],
  ['iovalkey', () => new iovalkey.Redis(options)],
  ['an older ioredis', olderClient],
  ['a pipeline', () => new Redis(options).pipeline()],
  ['a promise', () => Promise.resolve(new Redis(options))],
  ['a class', () => Redis],
  ['a URL', () => 'redis://127.0.0.1'],
  ['a cluster', () => new Cluster(nodes, clusterOptions)],
])('%s is refused, and the error names the alternatives', (_name, make) => {
  const client = make() as Redis
  const create = () => createSessionStore({ client, tokens })
  expect(create).toThrow(TypeError)
  expect(create).toThrow('client must be a client of ioredis 5 (from 5.11) or 6')
  expect(create).toThrow('sender: nodeRedisSender(client)')
})

test.each([
  ['a client of one server', () => new Redis(options)],
  ['a cluster of iovalkey', () => new iovalkey.Cluster(nodes, clusterOptions)],
  ['a cluster of node-redis', () => nodeRedis.createCluster({ rootNodes: [{}] })],
])('%s is refused as a cluster', (_name, make) => {
  const client = make() as Cluster
  expect(() => clusterSender({ client })).toThrow('client must be a Cluster of ioredis')
})
