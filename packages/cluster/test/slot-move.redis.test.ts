import type { Reply, SessionStore } from '@onetrip/session-store'
import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import calculateSlot from 'cluster-key-slot'
import { describe, expect, onTestFinished, test } from 'vitest'
import { codeOf, idOf } from '../../session-store/test/fixture.ts'
import { clusterStoreForThisTest, keys } from './cluster-store.ts'

const servers = clusterOfThisFile()

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

/** The tokens of ada and bob, whose sessions are in different slots of the same node. */
async function sessionsOfOneNode(store: SessionStore): Promise<[ada: string, bob: string]> {
  for (;;) {
    const [{ token: ada }, { token: bob }] = [await store.login('ada'), await store.login('bob')]
    const [own, other] = [slotOf(ada), slotOf(bob)]
    // Both are chosen anew, because a node may have only one of the 16 partitions.
    if (own !== other && (await nodesOf(own)).from === (await nodesOf(other)).from)
      return [ada, bob]
  }
}

/** A key in the slot of a session that does not exist, so that its node refuses writes while the slot moves. */
const missingKey = (token: string) => `${keys.login(idOf(token))}:missing`

const operation = (commands: [name: string, ...args: (string | number)[]][]) => ({
  commands,
  readOnly: false,
  read: (replies: readonly Reply[]) => replies,
})

describe('while a slot moves', () => {
  test('a read is not repeated after its operation has deleted the key', async () => {
    const { store } = await clusterStoreForThisTest(servers)
    const { token } = await store.login('ada')
    const slot = slotOf(token)
    const { from } = await nodesOf(slot)
    const cart = await keyBeside(slot)
    const inSlot = `${keys.login(idOf(token))}:cart`
    for (const key of [cart, inSlot]) await from.admin.hset(key, 'book', 1)
    await whileMoving(slot, async () => {
      const replies = await store.run(
        operation([
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

  test('a logout is complete although the slot of a view that is sent with it moves', async () => {
    const { store, client } = await clusterStoreForThisTest(servers)
    const [ada, bob] = await sessionsOfOneNode(store)
    await whileMoving(slotOf(ada), async () => {
      const view = store.recordView(ada, 'book')
      expect(await store.logout(bob)).toBe(true)
      expect(await view).toEqual({ user: 'ada', views: 1 })
    })
    expect(await client.zscore(keys.sessions('bob'), idOf(bob))).toBeNull()
  })

  test('a read after a redirected write of its slot is executed after that write', async () => {
    const { store } = await clusterStoreForThisTest(servers)
    const { token } = await store.login('ada')
    const slot = slotOf(token)
    const { from } = await nodesOf(slot)
    await whileMoving(slot, async () => {
      await from.admin.config('RESETSTAT')
      const login = keys.login(idOf(token))
      const replies = await store.run(
        operation([
          ['SET', missingKey(token), 1],
          ['HGET', login, idOf(token)],
        ]),
      )
      expect(replies).toEqual(['OK', 'ada'])
      const reads = /cmdstat_hget:calls=(\d+)/.exec(await from.admin.info('commandstats'))?.[1]
      expect(Number(reads)).toBe(2)
    })
  })

  test('a script whose keys are on two nodes is refused at once, and a retry is safe', async () => {
    const { store } = await clusterStoreForThisTest(servers)
    const { token } = await store.login('ada')
    const slot = slotOf(token)
    const { to } = await nodesOf(slot)
    const patch = () => store.patch(token, { cart: ['book'] })
    const results: unknown[] = []
    await resetErrors()
    await servers.moveSlot(slot, to, async () => {
      results.push(await patch().catch((error: unknown) => error))
    })
    expect(results.length).toBeGreaterThan(2) // before login and recent have moved, and after each
    const refused = expect.objectContaining({
      code: 'ONETRIP_REFUSED',
      message: expect.stringContaining('TRYAGAIN'),
      statusCode: 503,
      mayHaveWritten: false,
      retrySafe: true,
    })
    expect(results).toEqual(results.map(() => refused))
    expect(await errorsOf('TRYAGAIN')).toBe(results.length) // no retries
    expect(await patch()).toEqual({ version: 1 })
    expect(await store.data(token)).toEqual({ fields: { cart: ['book'] }, version: 1 })
  })

  test('a refused script does not delay what is sent with it', async () => {
    const { store } = await clusterStoreForThisTest(servers)
    const { token } = await store.login('ada')
    await whileMoving(slotOf(token), async () => {
      await resetErrors()
      const results = await Promise.allSettled([
        store.patch(token, { cart: ['book'] }),
        store.recordView(token, 'book'),
        store.checkToken(token),
      ])
      const refused = { code: 'ONETRIP_REFUSED', mayHaveWritten: false, retrySafe: true }
      expect(results).toMatchObject([
        { reason: refused },
        { value: { user: 'ada', views: 1 } },
        { value: { user: 'ada' } },
      ])
      expect(await errorsOf('TRYAGAIN')).toBe(1)
    })
    expect(await store.patch(token, { cart: ['book'] })).toEqual({ version: 1 })
  })
})

test('a redirection to a node that does not reply delays only its own operation', async () => {
  const { store } = await clusterStoreForThisTest(servers)
  const { token } = await store.login('ada')
  const slot = slotOf(token)
  const { from, to } = await nodesOf(slot)
  const cart = await keyBeside(slot)
  await from.admin.hset(cart, 'book', 1)
  await whileMoving(slot, async () => {
    // Connects to the node, so that the redirection is sent.
    await store.run(operation([['SET', missingKey(token), 1]]))
    to.program.signal('SIGSTOP')
    onTestFinished(() => void to.program.signal('SIGCONT'))
    let isOver = false
    const waiting = store.run(operation([['DEL', missingKey(token)]])).finally(() => {
      isOver = true
    })
    const others = await store.run(operation([['HGETALL', cart]]))
    expect(others).toEqual([['book', '1']])
    expect(isOver).toBe(false)
    to.program.signal('SIGCONT')
    expect(await waiting).toEqual([1])
  })
})

/** How many errors of this kind the nodes have returned since `resetErrors`. */
async function errorsOf(kind: string): Promise<number> {
  const infos = await Promise.all(servers.nodes.map(({ admin }) => admin.info('errorstats')))
  const counts = infos.map((info) => new RegExp(`errorstat_${kind}:count=(\\d+)`).exec(info)?.[1])
  return counts.reduce((sum, count) => sum + Number(count ?? 0), 0)
}

const resetErrors = () => Promise.all(servers.nodes.map(({ admin }) => admin.config('RESETSTAT')))

const items = Array.from({ length: 40 }, (_, index) => `item ${index}`)

describe('while many slots move', () => {
  test('a call on connections that have just ended reports that nothing was sent', async () => {
    const { store, client } = await clusterStoreForThisTest(servers)
    const { token } = await store.login('ada')
    for (const node of client.nodes()) node.stream?.destroy() // ioredis does not know it yet
    expect(await store.patch(token, { cart: [] }).catch(codeOf)).toBe('ONETRIP_NOT_SENT')
  })

  test('counts every acknowledged view once while slots move to another node', async () => {
    const { store } = await clusterStoreForThisTest(servers)
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
    const { store } = await clusterStoreForThisTest(servers)
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
})
