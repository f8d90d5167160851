import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { newStore, warningsOfThisTest } from '../../session-store/test/fixture.ts'
import { type ClusterOptions, cluster, partitionedKeys } from '../src/index.ts'
import { itemOn, loginOn, placeOf } from './cluster-places.ts'

// A stopped node must stay slow: no node may call it failed.
const servers = clusterOfThisFile({ config: { 'cluster-node-timeout': '60000' } })

function storeAt(options: Partial<ClusterOptions> = {}) {
  const redis = { nodes: servers.nodes.map(({ address }) => address) }
  return newStore(cluster({ redis, deadlineMs: 20_000, ...options }))
}

/** Stops a node. Returns a function that resumes it, which is also called when the current test ends. */
function stop(place: number): () => void {
  const node = servers.nodes[place]
  const resume = () => void node?.program.signal('SIGCONT')
  onTestFinished(resume)
  node?.program.signal('SIGSTOP')
  return resume
}

describe('a stopped node', () => {
  test('operations to a stopped node do not delay operations that are sent together with them', async () => {
    const store = storeAt()
    await store.ready()
    const { token } = await loginOn(store, 0)
    const resume = stop(2)
    let isOver = false
    const slow = store.recordView(token, itemOn(2)).finally(() => {
      isOver = true
    })
    const others = [0, 1, 0].map((place) => store.recordView(token, itemOn(place)))
    expect((await Promise.all(others)).map(({ user }) => user)).toEqual(['ada', 'ada', 'ada'])
    expect(isOver).toBe(false)
    resume()
    expect(await slow).toEqual({ user: 'ada', views: 1 })
  })

  test('maxInFlight is a limit per node', async () => {
    const store = storeAt({ maxInFlight: 5 })
    await store.ready()
    const [other, own] = [await loginOn(store, 0), await loginOn(store, 2)]
    const resume = stop(2)
    const view = () => store.recordView(own.token, itemOn(2))
    const waiting = Array.from({ length: 5 }, view)
    const refused = {
      code: 'ONETRIP_OVERLOADED',
      message: expect.stringContaining(`in flight to ${servers.nodes[2]?.address}`),
    }
    await expect(view()).rejects.toMatchObject(refused)
    await expect(store.recordView(other.token, itemOn(2))).rejects.toMatchObject(refused)
    for (let turn = 0; turn < 10; turn++) {
      expect(await store.recordView(other.token, itemOn(turn % 2))).toMatchObject({ user: 'ada' })
    }
    expect(store.info).toMatchObject({ inFlight: 5 })
    resume()
    const views = (await Promise.all(waiting)).map(({ views }) => views)
    expect(views.toSorted()).toEqual([1, 2, 3, 4, 5])
    expect(await view()).toMatchObject({ views: 6 })
  })

  test('health checks work while operations that need all nodes wait for one', async () => {
    const store = storeAt({ maxInFlight: 5 })
    await store.ready()
    const resume = stop(2)
    const waiting = Array.from({ length: 5 }, () => store.popularItems(3))
    await expect(store.popularItems(3)).rejects.toMatchObject({ code: 'ONETRIP_OVERLOADED' })
    const states = await store.ping(1_000)
    expect(states.map(({ error }) => error?.code)).toEqual([
      undefined,
      undefined,
      'ONETRIP_OUTCOME_UNKNOWN',
    ])
    resume()
    expect(await Promise.all(waiting)).toEqual(Array(5).fill([]))
  })
})

test('if the node with the number of partitions is down, a start only warns', async () => {
  const warnings = warningsOfThisTest()
  await storeAt().ready()
  const resume = stop(placeOf(partitionedKeys().janitorTasks()))
  await storeAt({ partitions: 16, deadlineMs: 2_000 }).ready()
  expect(warnings).toMatchObject([{ code: 'ONETRIP_LAYOUT' }])
  resume()
  await expect
    .poll(() =>
      storeAt({ partitions: 16 })
        .ready()
        .then(() => 'started', String),
    )
    .toContain('this process is set to 16 partitions, but the first start recorded 64')
})
