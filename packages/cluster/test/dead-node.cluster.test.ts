import { setImmediate as eventLoopTurn } from 'node:timers/promises'
import type { SessionStore, StoreError } from '@onetrip/session-store'
import type { ClusterNode } from '@onetrip/stack/cluster.ts'
import { testCluster } from '@onetrip/stack/testing/cluster.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { idOf, readyStore } from '../../session-store/test/fixture.ts'
import { cluster, partitionedKeys } from '../src/index.ts'
import { itemOn, loginOn } from './cluster-places.ts'

vi.setConfig({ testTimeout: 180_000 }) // each test starts a cluster, and waits until it takes note of a dead node

const keys = partitionedKeys()

const codeOf = (error: StoreError) => `${error.code}, may have written: ${error.mayHaveWritten}`
const notSent = 'ONETRIP_NOT_SENT, may have written: false'
const unknown = 'ONETRIP_OUTCOME_UNKNOWN, may have written: true'

interface TestbedOptions {
  replicas?: number
  deadlineMs?: number
}

/** So long that neither a deadline nor a stalled connection ends a wait for a hung node. */
const patient = { deadlineMs: 20_000 }

/** A cluster of three primaries, a store on it, and a session on each node. */
async function testbed({ replicas = 0, deadlineMs }: TestbedOptions = {}) {
  const servers = await testCluster({ replicas })
  onTestFinished(() => servers.stop())
  const nodes = servers.nodes.map(({ address }) => address)
  const store = await readyStore(cluster({ redis: { nodes }, deadlineMs }))
  const sessions = [await loginOn(store, 0), await loginOn(store, 1), await loginOn(store, 2)]
  return { servers, store, sessions }
}

test('an operation that needs a dead node is not sent at all, and others are served', async () => {
  const { servers, store, sessions } = await testbed()
  const ended = await loginOn(store, 0)
  await store.logout(ended.token)

  servers.nodes[2]?.program.signal('SIGKILL')
  await servers.nodes[2]?.program.exited
  await expect.poll(() => store.info?.ready).toBe(2)

  const views = [0, 1, 2].flatMap((own) =>
    [0, 1, 2].map((place) => ({ own, place, token: sessions[own]?.token ?? '' })),
  )
  views.push({ own: 0, place: 2, token: ended.token })
  const outcomes: Record<string, string[]> = {}
  const counted = [0, 0, 0]
  for (let round = 0; round < 20; round++) {
    await Promise.all(
      views.map(async ({ own, place, token }) => {
        const answer = await store.recordView(token, itemOn(place)).then(() => 'ok', codeOf)
        if (answer === 'ok') counted[place] = (counted[place] ?? 0) + 1
        const name = own === 2 || place === 2 ? 'needs the dead node' : 'others'
        outcomes[name] = [...new Set([...(outcomes[name] ?? []), answer])]
      }),
    )
  }
  expect(outcomes).toEqual({
    others: ['ok'],
    'needs the dead node': [notSent],
  })
  expect(counted).toEqual([40, 40, 0])
  for (const place of [0, 1]) {
    const item = itemOn(place)
    const views = await servers.nodes[place]?.admin.zscore(keys.popular(item), item)
    expect(views, 'no view of the session on the dead node was counted').toBe('-40')
  }
  expect(await servers.nodes[0]?.admin.exists(keys.viewed(idOf(ended.token)))).toBe(0)
})

test('a node dies under load: only what was in flight has an unknown outcome', async () => {
  const { servers, store, sessions } = await testbed()
  const callers = Array.from({ length: 24 }, (_, index) => ({
    place: index % 3,
    token: sessions[Math.floor(index / 3) % 3]?.token ?? '',
  }))
  const answers = new Map<string, number>()
  const counted = [0, 0, 0]
  const doubted = [0, 0, 0]
  let isOver = false
  const calls = callers.map(async ({ place, token }) => {
    while (!isOver) {
      const answer = await store.recordView(token, itemOn(place)).then(() => 'ok', codeOf)
      answers.set(answer, (answers.get(answer) ?? 0) + 1)
      if (answer === 'ok') counted[place] = (counted[place] ?? 0) + 1
      else if (answer !== notSent) doubted[place] = (doubted[place] ?? 0) + 1
      await eventLoopTurn() // a view that is not sent may fail at once
    }
  })
  await expect.poll(() => answers.get('ok')).toBeGreaterThan(200)
  servers.nodes[2]?.program.signal('SIGKILL')
  await expect.poll(() => answers.get(notSent)).toBeGreaterThan(200)
  isOver = true
  await Promise.all(calls)

  expect([notSent, unknown, 'ok']).toEqual(expect.arrayContaining([...answers.keys()]))
  expect(answers.get(unknown) ?? 0).toBeLessThanOrEqual(callers.length)
  for (const place of [0, 1]) {
    const item = itemOn(place)
    const views = -Number(await servers.nodes[place]?.admin.zscore(keys.popular(item), item))
    expect(views).toBeGreaterThanOrEqual(counted[place] ?? 0)
    expect(views).toBeLessThanOrEqual((counted[place] ?? 0) + (doubted[place] ?? 0))
  }
})

test('a hung node that the others call failed gets nothing until it is back', async () => {
  const { servers, store, sessions } = await testbed(patient)
  const node = servers.nodes[2] as ClusterNode
  const view = async () =>
    await store.recordView(sessions[0]?.token ?? '', itemOn(2)).then(() => 'ok', codeOf)
  expect(await view()).toBe('ok')
  node.program.signal('SIGSTOP')
  onTestFinished(() => void node.program.signal('SIGCONT'))
  let doubted = 0
  await expect
    .poll(async () => {
      const answer = await view()
      if (answer === unknown) doubted++
      return answer
    })
    .toBe(notSent)
  for (let repeated = 0; repeated < 20; repeated++) expect(await view()).toBe(notSent)
  node.program.signal('SIGCONT')
  await expect.poll(view).toBe('ok')
  // The node executed at most what it had received before the others called it failed.
  expect(doubted).toBeLessThanOrEqual(1)
  const views = -Number(await node.admin.zscore(keys.popular(itemOn(2)), itemOn(2)))
  expect(views).toBeLessThanOrEqual(2 + doubted)
})

test('a primary hangs, its replica takes over, and it resumes: it acknowledges nothing', async () => {
  const { servers, store, sessions } = await testbed({ replicas: 1, ...patient })
  const [old] = servers.nodes as [ClusterNode]
  const token = sessions[0]?.token ?? ''
  const view = async (item: string) => await store.recordView(token, item).then(() => 'ok', codeOf)
  expect(await view(itemOn(0))).toBe('ok')
  old.program.signal('SIGSTOP')
  onTestFinished(() => void old.program.signal('SIGCONT'))
  await expect.poll(() => view(itemOn(0))).toBe('ok') // the replica has taken over
  const item = itemOn(0)
  const before = await viewsOf(store, item)
  let acknowledged = 0
  const role = async () => String((await old.admin.role())[0])
  old.program.signal('SIGCONT')
  while ((await role()) !== 'slave' || acknowledged < 200) {
    expect(await view(item)).toBe('ok')
    acknowledged++
  }
  expect(await viewsOf(store, item)).toBe(before + acknowledged)
})

const viewsOf = async (store: SessionStore, item: string): Promise<number> =>
  (await store.popularItems(1_000)).find((found) => found.item === item)?.views ?? 0
