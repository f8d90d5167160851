import type { SessionStore } from '@onetrip/session-store'
import { testCluster } from '@onetrip/stack/testing/cluster.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { sidecarForThisTest } from '@onetrip/stack/testing/sidecar.ts'
import { expect, onTestFinished, test } from 'vitest'
import { bulk, fakeServer } from '../../session-store/test/fake-server.ts'
import { newStore, outcomeOf } from '../../session-store/test/fixture.ts'
import { cluster, sentinel as toPrimary } from '../src/index.ts'

const server = redisOfThisFile()

const login = (store: SessionStore) =>
  store.login('ada').then(
    () => 'ok',
    ({ code, cause }) => ({ code, reason: cause?.message }),
  )

const noReply = {
  code: 'ONETRIP_NOT_SENT',
  reason: expect.stringContaining('no reply during the handshake'),
}

test('the connection to one node is reopened if its handshake gets no reply', async () => {
  const servers = await testCluster()
  onTestFinished(() => servers.stop())
  const [first, , last] = servers.nodes
  const sidecar = await sidecarForThisTest(last?.address ?? '')
  const natMap = { [last?.address ?? '']: { host: '127.0.0.1', port: sidecar.port } }
  const redis = { nodes: [first?.address ?? ''], natMap }
  const store = newStore(cluster({ redis, deadlineMs: 200 }))
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
  const redis = `redis+cluster://:pw@127.0.0.1:${sidecar.port}`
  await expect(newStore(cluster({ redis, deadlineMs: 200 })).ready(300)).rejects.toMatchObject({
    code: 'ONETRIP_NOT_SENT',
  })
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
  const redis = `redis+sentinel://127.0.0.1:${sentinel.port}/shop`
  const store = newStore({ ...toPrimary({ redis }), deadlineMs: 200 })
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
