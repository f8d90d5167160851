import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { testCluster } from '@onetrip/stack/testing/cluster.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { type Sidecar, sidecarForThisTest } from '@onetrip/stack/testing/sidecar.ts'
import { Cluster } from 'ioredis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { clusterSender, partitionedKeys, sentinelSender } from '../src/cluster/index.ts'
import { longLivedConnection, type SessionStore, type SessionStoreOptions } from '../src/index.ts'
import { newStore, outcomeOf } from './fixture.ts'

const server = redisOfThisFile()

const storeForThisTest = (options: Partial<SessionStoreOptions>) =>
  newStore({ deadlineMs: 200, ...options })

const login = (store: SessionStore) =>
  store.login('ada').then(
    () => 'ok',
    ({ code, cause }) => ({ code, reason: cause?.message }),
  )

const noReply = {
  code: 'ONETRIP_NOT_SENT',
  reason: expect.stringContaining('no reply during the handshake'),
}

/** The sidecar accepts connections and passes nothing. The store must notice it, and recover by itself. */
async function expectRecovery(store: SessionStore, sidecar: Sidecar) {
  await store.ready()
  sidecar.breakDown()
  await sidecar.untilHanging(2)
  await expect.poll(() => login(store)).toEqual(noReply)
  sidecar.mend()
  await expect.poll(() => login(store)).toBe('ok')
}

describe('a connection is reopened if its handshake gets no reply', () => {
  test('with a user and a database', async () => {
    await server.redis.call('ACL', 'SETUSER', 'shop', 'on', '>pw', '~*', '&*', '+@all')
    const sidecar = await sidecarForThisTest(server.socket)
    const url = `redis://shop:pw@127.0.0.1:${sidecar.port}/5`
    await expectRecovery(storeForThisTest({ redis: url, poolSize: 2 }), sidecar)
  })
})

test('so is the connection to one node of a cluster, even without socketTimeout', async () => {
  const servers = await testCluster()
  onTestFinished(() => servers.stop())
  const [first, , last] = servers.nodes
  const sidecar = await sidecarForThisTest(last?.address ?? '')
  const client = new Cluster([first?.address ?? ''], {
    retryDelayOnFailover: 0,
    natMap: { [last?.address ?? '']: { host: '127.0.0.1', port: sidecar.port } },
    lazyConnect: true,
  })
  onTestFinished(() => client.disconnect())
  const store = storeForThisTest({
    sender: clusterSender({ client, deadlineMs: 200 }),
    keys: partitionedKeys(),
  })
  const counts = () => outcomeOf(store.popularItems())
  await store.ready()
  sidecar.breakDown()
  await expect
    .poll(async () => [await counts(), sidecar.hanging > 1])
    .toEqual(['ONETRIP_NOT_SENT', true])
  sidecar.mend()
  await expect.poll(counts).toBe('ok')
})

test('ready() of a cluster fails in bounded time, even if no node replies to AUTH', async () => {
  const sidecar = await sidecarForThisTest(server.socket)
  sidecar.breakDown()
  const sender = clusterSender({ nodes: [`127.0.0.1:${sidecar.port}`], password: 'pw' })
  await expect(
    storeForThisTest({ sender, keys: partitionedKeys() }).ready(300),
  ).rejects.toMatchObject({
    code: 'ONETRIP_NOT_SENT',
  })
})

/** A server that replies to each command with what `reply` returns; to nothing if it returns undefined. */
async function fakeServer(reply: (command: string) => string | undefined) {
  const sockets = new Set<Socket>()
  const fake = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.setEncoding('utf8').on('data', (text: string) => {
      for (const command of text.split(/\*\d+\r\n/).slice(1)) {
        const words = command.split('\r\n').filter((word) => !/^(\$\d+|)$/.test(word))
        socket.write(reply(words.join(' ').toLowerCase()) ?? '')
      }
    })
  })
  await once(fake.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await fake[Symbol.asyncDispose]()
  })
  return { port: (fake.address() as AddressInfo).port, sockets }
}

const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`

test('a connection is kept while Redis loads its data', async () => {
  let asked = 0
  const { port, sockets } = await fakeServer((command) => {
    if (!command.startsWith('info')) return '+OK\r\n'
    const loading = asked++ < 2
    return bulk(`loading:${Number(loading)}\r\nloading_eta_seconds:1\r\n`)
  })
  const redis = longLivedConnection(`redis://127.0.0.1:${port}`, 20)
  onTestFinished(() => redis.disconnect())
  await redis.connect()
  expect(asked).toBe(3)
  expect(sockets.size).toBe(1)
})

/** A sentinel behind a sidecar. It names a primary, which is behind another sidecar. */
async function sentinelForThisTest() {
  const primary = await sidecarForThisTest(server.socket)
  let subscriptions = 0
  const { port } = await fakeServer((command) => {
    if (command.startsWith('client')) return '+OK\r\n'
    if (command.startsWith('sentinel get-master-addr-by-name')) {
      return `*2\r\n${bulk('127.0.0.1')}${bulk(String(primary.port))}`
    }
    if (command.startsWith('sentinel')) return '*0\r\n'
    subscriptions++
    return `*3\r\n${bulk('subscribe')}${bulk('+switch-master')}:1\r\n`
  })
  const sentinel = await sidecarForThisTest(`127.0.0.1:${port}`)
  const nodes = [`127.0.0.1:${sentinel.port}`]
  const store = storeForThisTest({
    sender: sentinelSender({ nodes, name: 'shop', deadlineMs: 200 }),
  })
  await store.ready()
  return { store, primary, sentinel, subscriptions: () => subscriptions }
}

test('with a sentinel and a primary that accept connections and pass nothing', async () => {
  const { store, primary, sentinel, subscriptions } = await sentinelForThisTest()
  await expect.poll(subscriptions).toBeGreaterThan(0)
  const before = subscriptions()
  sentinel.breakDown()
  primary.breakDown()
  await sentinel.untilHanging(3)
  sentinel.mend()
  await primary.untilHanging(2)
  await expect.poll(() => login(store)).toEqual(noReply)
  primary.mend()
  await expect.poll(() => login(store)).toBe('ok')
  await expect.poll(subscriptions).toBeGreaterThan(before) // to the reports of failovers
})
