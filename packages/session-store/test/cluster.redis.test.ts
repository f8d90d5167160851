import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import calculateSlot from 'cluster-key-slot'
import { Cluster, Redis } from 'ioredis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { clusterSender, createCluster, partitionedKeys } from '../src/cluster/index.ts'
import { articleKeys, createSessionStore } from '../src/core/index.ts'
import { clusterStoreForThisTest, keys, strategies, tokens } from './cluster-store.ts'
import { idOf } from './fixture.ts'

const servers = clusterOfThisFile({ config: { appendfsync: 'always' } })

const codeOf = (error: unknown) => (error as { code: string }).code
const items = Array.from({ length: 40 }, (_, index) => `item ${index}`)

describe.each(strategies)('%s', (strategy) => {
  test('spreads sessions and counts over the nodes', async () => {
    const { store } = await clusterStoreForThisTest(servers, strategy)
    const sessions = await Promise.all(['ada', 'bob', 'cyd'].map((user) => store.login(user)))
    const ada = sessions[0]?.token ?? ''
    for (const { token } of sessions) {
      await Promise.all(items.map((item) => store.recordView(token, item)))
    }
    expect(await store.checkToken(ada)).toMatchObject({ user: 'ada' })
    expect(await store.viewedItems(ada)).toHaveLength(25)
    expect(new Set((await store.recentSessions()).map(({ user }) => user))).toEqual(
      new Set(['ada', 'bob', 'cyd']),
    )
    expect(await store.popularItems(100)).toEqual(
      expect.arrayContaining(items.map((item) => ({ item, views: 3 }))),
    )
    const sizes = await Promise.all(servers.nodes.map(({ admin }) => admin.dbsize()))
    expect(Math.min(...sizes)).toBeGreaterThan(0)

    expect(await store.logoutEverywhere(ada)).toBe(1)
    await expect(store.recordView(ada, 'item 0')).rejects.toMatchObject({
      code: 'ONETRIP_UNKNOWN_SESSION',
    })
    expect(await store.popularItems(100)).toEqual(
      expect.arrayContaining([{ item: 'item 0', views: 3 }]),
    )
  })

  test('moves the data of guests to sessions on other nodes', async () => {
    const { store } = await clusterStoreForThisTest(servers, strategy)
    for (const item of items.slice(0, 20)) {
      const guest = await store.loginGuest()
      await store.recordView(guest.token, item)
      await store.patch(guest.token, { cart: [item] })
      const { token } = await store.login('ada', { from: guest.token })
      const data = { fields: { cart: [item] }, version: 1 }
      expect(await store.checkToken(token, { data: true })).toMatchObject({ user: 'ada', data })
      expect(await store.viewedItems(token)).toMatchObject([{ item }])
      await expect(store.data(guest.token)).rejects.toThrow(
        'the session does not exist or has ended',
      )
    }
    const { sessions } = await store.exportUser('ada')
    expect(sessions.flatMap(({ data }) => data.cart).toSorted()).toEqual(
      items.slice(0, 20).toSorted(),
    )
    expect(await store.eraseUser('ada')).toBe(20)
    const left = await Promise.all(servers.nodes.map(({ admin }) => admin.keys('*')))
    const kept = [...keys.allPopular(), keys.janitorTasks()]
    expect(left.flat().filter((key) => !kept.includes(key))).toEqual([])
  })

  test('counts every acknowledged view once while slots move to another node', async () => {
    const { store } = await clusterStoreForThisTest(servers, strategy)
    const sessions = await Promise.all(items.slice(0, 8).map((user) => store.login(user)))
    const acknowledged = new Map<string, number>()
    let moving = true
    const viewer = async ({ token }: { token: string }, offset: number) => {
      for (let turn = 0; moving; turn++) {
        const item = items[(offset + turn) % items.length] ?? ''
        await store.recordView(token, item)
        acknowledged.set(item, (acknowledged.get(item) ?? 0) + 1)
      }
    }
    const viewing = Promise.all(sessions.map(viewer))
    const slots = [...new Set(keys.allPopular().map((key) => calculateSlot(key)))]
    try {
      for (let move = 0; move < slots.length || acknowledged.size < items.length; move++) {
        const target = servers.nodes[(move + Math.floor(move / slots.length)) % 3]
        if (target) await servers.moveSlot(slots[move % slots.length] ?? 0, target)
      }
    } finally {
      moving = false
      await viewing
    }

    const popular = await store.popularItems(100)
    expect(new Map(popular.map(({ item, views }) => [item, views]))).toEqual(acknowledged)
  })

  test('finds a session and counts its views at every stage of a move of its slot', async () => {
    const { store } = await clusterStoreForThisTest(servers, strategy)
    const { token } = await store.login('ada')
    await store.recordView(token, 'book')
    const slot = calculateSlot(keys.login(idOf(token)))
    let views = 1
    for (const target of servers.nodes) {
      await servers.moveSlot(slot, target, async () => {
        expect(await store.recordView(token, 'book')).toEqual({ user: 'ada', views: ++views })
      })
    }
    expect(views).toBeGreaterThan(6) // at least two of the three moves moved three keys each
  })

  test('a call on connections that have just ended reports that nothing was sent', async () => {
    const { store, client } = await clusterStoreForThisTest(servers, strategy)
    const { token } = await store.login('ada')
    for (const node of client.nodes()) node.stream?.destroy() // ioredis does not know it yet
    expect(await store.patch(token, { cart: [] }).catch(codeOf)).toBe('ONETRIP_NOT_SENT')
  })

  test('a node that dies in the middle of a pipeline: nothing hangs, nothing counts twice', async () => {
    const { store } = await clusterStoreForThisTest(servers, strategy)
    const { token } = await store.login('ada')
    await Promise.all(items.map((item) => store.recordView(token, item)))
    const killed = servers.nodes[0]
    killed?.program.signal('SIGSTOP') // so that the views are in flight when the node dies
    const views = items.map((item) => store.recordView(token, item).then(() => 'ok', codeOf))
    killed?.program.signal('SIGKILL')
    const results = await Promise.all(views)
    expect(new Set(results)).not.toContain('ONETRIP_REFUSED')

    await killed?.restart()
    await expect
      .poll(() => store.popularItems(100).then((found) => found.length, codeOf))
      .toBe(items.length)
    const counts = new Map((await store.popularItems(100)).map(({ item, views }) => [item, views]))
    for (const [index, item] of items.entries()) {
      const count = counts.get(item) ?? 0
      expect(count, item).toBeGreaterThanOrEqual(results[index] === 'ok' ? 2 : 1)
      expect(count, item).toBeLessThanOrEqual(2)
    }
  })
})

test('a client that could send a write twice is refused, with the options to change', () => {
  const client = new Redis({ lazyConnect: true })
  expect(() => createSessionStore({ client, tokens })).toThrow('set enableOfflineQueue: false')
  client.disconnect()
  const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true })
  expect(() => clusterSender({ client: cluster })).toThrow('set retryDelayOnFailover: 0')
  cluster.disconnect()
})

test('keys that do not fit a cluster are refused', async () => {
  const client = createCluster([{ host: '127.0.0.1', port: 1 }])
  onTestFinished(() => client.disconnect())
  const sender = clusterSender({ client })
  const ofItems = { ...keys, once: articleKeys.once }
  const options = { sender, tokens, janitor: 'elsewhere' } as const
  for (const unfit of [articleKeys, ofItems, { ...keys, data: articleKeys.data }]) {
    const create = () => createSessionStore({ ...options, keys: unfit })
    expect(create).toThrow('set keys: partitionedKeys()')
  }
  expect(() => createSessionStore(options)).toThrow('set keys: partitionedKeys()')
  await createSessionStore({ ...options, keys: partitionedKeys(3) }).close()
  expect(client.listenerCount('error')).toBe(0)
})
