import { createRequire } from 'node:module'
import { Cluster, Redis } from 'ioredis'
import { expect, test } from 'vitest'
import {
  type Client,
  createSessionStore,
  partitionedKeys,
  safeClusterOptions,
  safeRedisOptions,
} from '../src/core/index.ts'

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
  ['node-redis', () => nodeRedis.createClient(), 'use sender: nodeRedisSender(client)'],
  [
    'a cluster of node-redis',
    () => nodeRedis.createCluster({ rootNodes: [{}] }),
    'use sender: nodeRedisSender(client)',
  ],
  ['iovalkey', () => new iovalkey.Redis(options), 'such as iovalkey: install ioredis 6'],
  ['its cluster', () => new iovalkey.Cluster(nodes, clusterOptions), 'such as iovalkey'],
  ['an older ioredis', olderClient, 'this is an older ioredis'],
  ['a pipeline', () => new Redis(options).pipeline(), 'pass its client'],
  ['a transaction', () => new Redis(options).multi(), 'pass its client'],
  ['a promise', () => Promise.resolve(new Redis(options)), 'await it first'],
  ['a class', () => Redis, 'pass an instance'],
  ['a URL', () => 'redis://127.0.0.1', 'pass it as url'],
  ['options of ioredis', () => ({ host: '127.0.0.1', port: 6379 }), 'use url, or a custom sender'],
  ['null', () => null, 'use url, or a custom sender'],
])('%s is refused, and the error names the alternative', (_name, make, words) => {
  const client = make() as Client
  const create = () => createSessionStore({ client, tokens })
  expect(create).toThrow(TypeError)
  expect(create).toThrow('client must be a client of ioredis 5 (from 5.11) or 6; this is')
  expect(create).toThrow(words)
})

test('ioredis and its cluster are accepted', async () => {
  const cluster = new Cluster(nodes, clusterOptions)
  for (const client of [new Redis(options), cluster]) {
    const store = createSessionStore({
      client,
      tokens,
      keys: partitionedKeys(),
      janitor: 'elsewhere',
    })
    await store.close()
    client.disconnect()
  }
})
