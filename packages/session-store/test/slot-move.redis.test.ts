import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import calculateSlot from 'cluster-key-slot'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createCluster, createSessionStore, partitionedKeys, type Reply } from '../src/index.ts'
import { EXTERNAL } from '../src/keys.ts'
import { idOf } from './retention-fixture.ts'

const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }
const strategies = ['sequential', 'pipeline', 'batch'] as const
const keys = partitionedKeys(16)

const servers = clusterOfThisFile()

async function storeForThisTest(strategy: (typeof strategies)[number]) {
  const client = createCluster(servers.nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
  const store = createSessionStore({
    ...{ client, keys, strategy, tokens },
    deadlineMs: 20_000,
    janitor: false,
  })
  onTestFinished(async () => {
    await store.close()
    client.disconnect()
  })
  await store.ready()
  return { store, client }
}

const slotOf = (token: string) => calculateSlot(keys.login(idOf(token)))

/** The node that has a slot, and another one. */
async function nodesOf(slot: number) {
  const [node] = servers.nodes
  const ranges = (await node?.admin.cluster('SLOTS')) ?? []
  const range = ranges.find(([first, last]) => slot >= first && slot <= last)
  const from = servers.nodes.find(({ port }) => port === range?.[2]?.[1])
  const to = servers.nodes.find((node) => node !== from)
  if (!from || !to) throw new Error(`no node has slot ${slot}`)
  return { from, to }
}

/** Moves a slot, and calls `work` before the first key has moved. Completes the move even if `work` fails. */
async function whileMoving(slot: number, work: () => Promise<void>): Promise<void> {
  const { to } = await nodesOf(slot)
  let result: Promise<void> | undefined
  await servers.moveSlot(slot, to, async () => {
    result ??= work()
    await result.catch(() => undefined)
  })
  await result
}

/** A key in another slot of the same node. */
async function keyBeside(slot: number): Promise<string> {
  const { from } = await nodesOf(slot)
  for (let number = 0; ; number++) {
    const key = `cart:{${number}}`
    const own = calculateSlot(key)
    if (own !== slot && (await nodesOf(own)).from === from) return key
  }
}

/** A key in the slot of a session that does not exist, so that its node refuses writes while the slot moves. */
const missingKey = (token: string) => `${keys.login(idOf(token))}:missing`

const update = (commands: [name: string, ...args: (string | number)[]][]) => ({
  commands,
  readOnly: false,
  read: (replies: readonly Reply[]) => replies,
})

describe.each(strategies)('%s', (strategy) => {
  test('a read is not repeated after its update has deleted the key', async () => {
    const { store } = await storeForThisTest(strategy)
    const { token } = await store.login('ada')
    const slot = slotOf(token)
    const { from } = await nodesOf(slot)
    const cart = await keyBeside(slot)
    const inSlot = `${keys.login(idOf(token))}:cart`
    for (const key of [cart, inSlot]) await from.admin.hset(key, 'book', 1)
    await whileMoving(slot, async () => {
      const replies = await store.run(
        update([
          ['SET', missingKey(token), 1],
          ...[cart, inSlot].flatMap((key): [string, string][] => [
            ['HGETALL', key],
            ['DEL', key],
          ]),
        ]),
      )
      expect(replies).toEqual(['OK', ['book', '1'], 1, ['book', '1'], 1])
    })
  })

  test('the end of a session is reported while its slot moves', async () => {
    const { store } = await storeForThisTest(strategy)
    await store.external.put('one', { cart: [] })
    const slot = calculateSlot(keys.login(`${EXTERNAL}one`))
    await whileMoving(slot, async () => {
      expect(await store.external.end('one')).toBe(true)
    })
    expect(await store.external.read('one')).toBeUndefined()
  })

  test('a logout is complete although the slot of a view that is sent with it moves', async () => {
    const { store, client } = await storeForThisTest(strategy)
    const { token } = await store.login('ada')
    const slot = slotOf(token)
    const { from } = await nodesOf(slot)
    let bob: string
    do bob = (await store.login('bob')).token
    while (slotOf(bob) === slot || (await nodesOf(slotOf(bob))).from !== from)
    await whileMoving(slot, async () => {
      const view = store.recordView(token, 'book')
      expect(await store.logout(bob)).toBe(true)
      expect(await view).toEqual({ user: 'ada', views: 1 })
    })
    expect(await client.zscore(keys.sessions('bob'), idOf(bob))).toBeNull()
  })

  test('a read after a redirected write of its slot is executed after that write', async () => {
    const { store } = await storeForThisTest(strategy)
    const { token } = await store.login('ada')
    const slot = slotOf(token)
    const { from } = await nodesOf(slot)
    await whileMoving(slot, async () => {
      await from.admin.config('RESETSTAT')
      const login = keys.login(idOf(token))
      const replies = await store.run(
        update([
          ['SET', missingKey(token), 1],
          ['HGET', login, idOf(token)],
        ]),
      )
      expect(replies).toEqual(['OK', 'ada'])
      const reads = /cmdstat_hget:calls=(\d+)/.exec(await from.admin.info('commandstats'))?.[1]
      expect(Number(reads)).toBe(strategy === 'sequential' ? 1 : 2)
    })
  })
})
