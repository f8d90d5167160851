import { disconnectionChannel, roundTripChannel } from '@onetrip/session-store'
import { freePorts } from '@onetrip/stack/ports.ts'
import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { idOf, messagesOf, newStore, outcomeOf } from '../../session-store/test/fixture.ts'
import { type ClusterAddress, type ClusterOptions, cluster, partitionedKeys } from '../src/index.ts'
import { itemOn, loginOn, placeOf } from './cluster-places.ts'

const keys = partitionedKeys()

const servers = clusterOfThisFile({ config: { appendfsync: 'always' } }) // one of them is killed
const names = () => servers.nodes.map(({ address }) => address)

function storeAt({ nodes = names(), ...options }: Partial<ClusterAddress & ClusterOptions> = {}) {
  const location = cluster({ deadlineMs: 20_000, ...options, redis: { nodes } })
  return newStore({ ...location, prefix: 'shop:' })
}

describe('a cluster', () => {
  test('uses the nodes that it discovers', async () => {
    const store = storeAt({ nodes: names().slice(0, 1) })
    await store.ready()
    const guest = await store.loginGuest()
    await store.recordView(guest.token, 'pen')
    const { token } = await store.login('ada', { from: guest.token })
    const items = [0, 1, 2].map(itemOn)
    for (const item of items) await store.recordView(token, item)
    const [item = ''] = items
    expect(await store.recordView(token, item)).toEqual({ user: 'ada', views: 2 })
    await expect(store.recordView(token, item, { idempotencyKey: 'one' })).rejects.toThrow(
      'needs all keys on one Redis',
    )
    expect(await store.viewedItems(token)).toHaveLength(4)
    expect(new Set(await store.popularItems())).toEqual(
      new Set(['pen', ...items].map((name) => ({ item: name, views: name === item ? 2 : 1 }))),
    )
    await store.patch(token, { cart: ['book'] })
    expect(await store.data(token)).toEqual({ fields: { cart: ['book'] }, version: 1 })
    expect((await store.countAttempts(['ada', '127.0.0.1', 'x'], 60)).counts).toEqual([1, 1, 1])
    await store.login('ada')
    expect((await store.userSessions(token)).sessions).toHaveLength(2)
    expect(await store.endUserSessions('ada')).toBe(2)
    await store.login('ada')
    expect(await store.janitor({ maxSessions: 0 }).runOnce()).toMatchObject({ evicted: 1 })
    expect((await store.ping()).map(({ node }) => node).sort()).toEqual(names().sort())
    const uptimes = await store.runOnEach({
      commands: [['INFO', 'server']],
      readOnly: true,
      read: ([info]) => /tcp_port:(\d+)/.exec(String(info))?.[1],
    })
    expect(uptimes.map(({ node, result }) => node === `127.0.0.1:${result}`)).toEqual([
      ...[true, true, true],
    ])
  })
})

test('an empty list of commands', async () => {
  const location = cluster({ redis: { nodes: names() } })
  await newStore(location).ready()
  expect(await location.sender.send({ commands: [] })).toEqual([])
})

test('a view is one round trip, with at most one pipeline to each node', async () => {
  const store = storeAt()
  await store.ready()
  const { token } = await store.login('ada')
  const roundTrips = messagesOf(roundTripChannel)
  const reads = async () => {
    const infos = await Promise.all(servers.nodes.map(({ admin }) => admin.info('stats')))
    return infos.map((info) => Number(/total_reads_processed:(\d+)/.exec(info)?.[1]))
  }
  for (const place of [0, 1, 2]) {
    const before = await reads()
    roundTrips.length = 0
    await store.recordView(token, itemOn(place))
    const after = await reads()
    // One more for each: the INFO of this test.
    const own = after.map((all, index) => all - (before[index] ?? 0) - 1)
    expect(roundTrips).toHaveLength(1)
    expect(Math.max(...own)).toBe(1)
    expect(own.reduce((sum, one) => sum + one)).toBeLessThanOrEqual(2)
  }
})

test('when a node is down, the others serve, and the error names it', async () => {
  const lost = servers.nodes[1]
  const store = storeAt({ deadlineMs: 5_000 })
  await store.ready()
  const sessions = await Promise.all(
    Array.from({ length: 30 }, (_, index) => store.login(`user ${index}`)),
  )
  lost?.program.signal('SIGKILL')
  await lost?.program.exited
  let restarted: Promise<void> | undefined
  const restart = () => (restarted ??= lost?.restart())
  onTestFinished(restart)
  const view = ({ token }: { token: string }) => outcomeOf(store.recordView(token, itemOn(0)))
  const places = sessions.map(({ token }) => placeOf(keys.login(idOf(token))))
  expect(new Set(places).size).toBe(3)
  // Nothing is sent to the node that counts the item either.
  const expected = places.map((place) => (place === 1 ? 'ONETRIP_NOT_SENT' : 'ok'))
  await expect.poll(() => Promise.all(sessions.map(view))).toEqual(expected)
  await expect
    .poll(async () => (await store.ping()).filter(({ error }) => error))
    .toMatchObject([{ node: `127.0.0.1:${lost?.port}`, error: { code: 'ONETRIP_NOT_SENT' } }])
  expect(store.info).toMatchObject({ connections: 3, ready: 2 })
  const onLost = sessions[places.indexOf(1)]?.token ?? ''
  const check = () => store.checkToken(onLost)
  await expect(check()).rejects.toThrow(`127.0.0.1:${lost?.port}`)
  // The client does not refresh the slots for every request that finds no node.
  const [before, startedAt] = [await connectionsReceived(), performance.now()]
  for (let turn = 0; turn < 3_000; turn++) await expect(check()).rejects.toThrow()
  const asked = (await connectionsReceived()) - before
  expect(asked).toBeLessThan((performance.now() - startedAt) / 100 + 10)
  // A new store can start without this node.
  const other = storeAt({ nodes: names().toReversed() })
  await other.ready()
  expect((await other.ping()).filter(({ error }) => error)).toHaveLength(1)

  await restart()
  await expect.poll(() => Promise.all(sessions.map(view))).toEqual(places.map(() => 'ok'))
})

test('when a node is paused, only its connection is closed, and calls to other nodes do not wait', async () => {
  const stopped = servers.nodes[2]
  const deadlineMs = 2_000 // for the nodes that answer, on a busy machine
  const store = storeAt({ deadlineMs })
  await store.ready()
  const { token } = await loginOn(store, 0)
  const lost = messagesOf(disconnectionChannel)
  stopped?.program.signal('SIGSTOP')
  onTestFinished(() => stopped?.program.signal('SIGCONT'))
  const view = (place: number) => outcomeOf(store.recordView(token, itemOn(place)))
  expect(await view(2)).toBe('ONETRIP_OUTCOME_UNKNOWN')
  const states = await store.ping(deadlineMs)
  expect(states.filter(({ error }) => error).map(({ node }) => node)).toEqual([
    `127.0.0.1:${stopped?.port}`,
  ])
  const seen = new Set<string>()
  while (lost.length === 0) {
    seen.add(await view(0))
    await view(2)
  }
  for (let turn = 0; turn < 50; turn++) seen.add(await view(turn % 2))
  expect(seen).toEqual(new Set(['ok']))
  expect(lost).toHaveLength(1)
  // The node accepts the new connection but never replies, so waiting operations are not sent.
  for (let turn = 0; turn < 3; turn++) {
    expect((await store.ping(deadlineMs - 200)).flatMap(({ error }) => error ?? [])).toMatchObject([
      { code: 'ONETRIP_NOT_SENT' },
    ])
  }
  stopped?.program.signal('SIGCONT')
  await expect.poll(() => view(2)).toBe('ok')
})

/** Asks the nodes that are up. */
async function connectionsReceived(): Promise<number> {
  const up = servers.nodes.filter(({ admin }) => admin.status === 'ready')
  const infos = await Promise.all(up.map(({ admin }) => admin.info('stats')))
  const received = infos.map((info) => Number(/total_connections_received:(\d+)/.exec(info)?.[1]))
  return received.reduce((sum, one) => sum + one, 0)
}

test('a node of a cluster cannot be used as a single Redis, nor a single Redis as a cluster', async () => {
  const node = newStore({ redis: `redis://${names()[0]}` })
  expect(placeOf('login:')).not.toBe(0) // the key name without partitions
  await expect(node.ready()).rejects.toMatchObject({
    code: 'ONETRIP_REFUSED',
    message: expect.stringContaining('MOVED'),
  })
  const [port = 0] = await freePorts(1)
  await redisForThisTest({ port })
  const single = storeAt({ nodes: [`127.0.0.1:${port}`] })
  await expect(single.ready(500)).rejects.toMatchObject({
    code: 'ONETRIP_NOT_SENT',
    cause: { message: expect.stringContaining('cluster support disabled') },
  })
})

test.each([
  [{ nodes: [] }, 'cluster needs a list of nodes'],
  [{ nodes: ['redis:7000', 'user:secret@redis'] }, 'cluster: node 2 must look like'],
  [{ nodes: ['redis:0'] }, 'the port must be a number from 1 to 65535'],
  [{ nodes: ['redis:1'], username: 'api' }, 'username needs a password'],
  [{ nodes: ['redis:1'], tls: { cert: 'x' } }, 'set both cert and key, or neither'],
  [{ nodes: ['redis:1'], node: 'redis' }, 'redis has no option node:'],
])('%j is refused: %s', (redis, message) => {
  expect(() => cluster({ redis })).toThrow(TypeError)
  expect(() => cluster({ redis })).toThrow(message)
})
