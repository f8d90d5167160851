import { setTimeout as delay } from 'node:timers/promises'
import { viewOf } from '@onetrip/stack/cluster/view.ts'
import type { ClusterNode } from '@onetrip/stack/cluster.ts'
import { type RelayProcess, startRelay } from '@onetrip/stack/relay/process.ts'
import type { View } from '@onetrip/stack/testing/audit/ledger.ts'
import type { TestCluster } from '@onetrip/stack/testing/cluster.ts'
import { moveSlots } from '@onetrip/stack/testing/move-slots.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test, vi } from 'vitest'
import { acknowledged, auditCluster, CONCURRENCY, clusterTestbed } from './cluster-testbed.ts'

vi.setConfig({ testTimeout: 180_000 }) // each test starts a cluster and an API, and waits for a fault to take effect

const nothingWrong = { lost: 0, extra: 0, discrepancies: [] }
const WAIT_EVERY_MS = 5

/**
 * Repeats WAIT on a separate connection, to learn which writes of the node a replica has. WAIT covers the writes of
 * its own connection and all earlier writes, so each turn first writes `key`.
 */
function startWaiting({ port }: ClusterNode, key: string, views: readonly View[]) {
  const redis = new Redis({ port, retryStrategy: () => null })
  redis.on('error', () => {}) // the node is killed
  onTestFinished(() => redis.disconnect())
  let confirmed = 0
  const loop = async () => {
    for (;;) {
      const ended = views.length
      await redis.incr(key)
      if ((await redis.wait(1, 100)) > 0) confirmed = ended
      await delay(WAIT_EVERY_MS)
    }
  }
  return {
    /** Number of views that had been answered when the last confirmed write was sent. */
    confirmed: () => confirmed,
    /** Resolves once the connection is lost. */
    ended: loop().catch(() => {}),
  }
}

test('a primary is killed under load: the failover loses no view that WAIT has confirmed', async ({
  annotate,
}) => {
  const { servers, viewing, placesOf, keyOn, settle } = await clusterTestbed({ replicas: 1 })
  const [primary, , , replica] = servers.nodes as [ClusterNode, unknown, unknown, ClusterNode]
  const { views } = viewing
  const isAtRisk = (view: View) => acknowledged(view) && placesOf(view).includes(0)
  const waiting = startWaiting(primary, keyOn(0), views)
  await expect.poll(waiting.confirmed).toBeGreaterThan(300)

  // Cut off the replica, so that it misses the last writes.
  replica.program.signal('SIGSTOP')
  await primary.admin.call('CLIENT', 'KILL', 'TYPE', 'replica')
  const cutAt = views.length
  await expect.poll(() => views.slice(cutAt).filter(isAtRisk).length).toBeGreaterThan(50)
  primary.program.signal('SIGKILL')
  await Promise.all([primary.program.exited, waiting.ended])
  const killedAt = views.length
  replica.program.signal('SIGCONT')
  await viewing.next((view) => !acknowledged(view) && placesOf(view).includes(0))
  await viewing.next(isAtRisk)

  const all = await settle()
  const confirmed = all.map((view, index) =>
    index >= waiting.confirmed() && acknowledged(view)
      ? { ...view, outcome: 'unknown' as const }
      : view,
  )
  expect(await auditCluster(servers.nodes, confirmed)).toEqual(nothingWrong)
  const { lost, extra } = await auditCluster(servers.nodes, all)
  // Some responses may still have been on their way to the clients when the primary was killed.
  const unconfirmed = all.slice(waiting.confirmed(), killedAt + CONCURRENCY)
  expect(lost).toBeLessThanOrEqual(unconfirmed.filter(isAtRisk).length)
  expect(extra).toBe(0)
  await annotate(
    `${lost} of ${all.filter(acknowledged).length} acknowledged views were lost; ${waiting.confirmed()} were confirmed by WAIT`,
  )
})

test('all slots move to another node and back under load: no view is lost or counted twice', async () => {
  const { servers, viewing, settle } = await clusterTestbed()
  const { nodes } = servers
  const slotsOf = async ({ admin }: ClusterNode) => (await viewOf(admin)).self.slots
  const before = await Promise.all(nodes.map(slotsOf))
  const items = () => new Set(viewing.views.filter(acknowledged).map(({ item }) => item))
  await expect.poll(() => items().size).toBe(20) // from now on, no new keys are created
  for (const [place, from] of nodes.entries()) {
    const to = nodes[(place + 1) % nodes.length] as ClusterNode
    const ranges = before[place] ?? []
    await moveSlots(nodes, { ranges, from, to })
    expect(await slotsOf(from)).toEqual([])
    await viewing.next(acknowledged)
    await moveSlots(nodes, { ranges, from: to, to: from })
    await viewing.next(acknowledged)
  }
  expect(await Promise.all(nodes.map(slotsOf))).toEqual(before)
  const views = await settle()
  expect(await auditCluster(nodes, views)).toEqual(nothingWrong)
})

/** Starts a relay, through which all clients of the cluster reach the node from now on. */
async function relayTo(node: ClusterNode, { nodes }: TestCluster): Promise<RelayProcess> {
  const relay = await startRelay({ to: node.address })
  onTestFinished(() => relay.stop())
  const port = Number(relay.address.split(':').at(-1))
  await node.admin.config('SET', 'cluster-announce-port', String(port))
  const announced = async ({ admin }: ClusterNode) =>
    (await admin.cluster('SLOTS')).some(([, , node]) => node?.[1] === port)
  await expect.poll(() => Promise.all(nodes.map(announced))).toEqual(nodes.map(() => true))
  return relay
}

test.each(['stopped', 'unreachable'])(
  'a node is %s for longer than the deadline: sessions and items of other nodes are served',
  async (fault) => {
    let relay: RelayProcess | undefined
    const { servers, viewing, placesOf, settle } = await clusterTestbed({
      async prepare(servers) {
        if (fault === 'unreachable') relay = await relayTo(servers.nodes[2] as ClusterNode, servers)
      },
    })
    const node = servers.nodes[2] as ClusterNode
    const begin = async () =>
      relay ? await relay.command('stall') : node.program.signal('SIGSTOP')
    const end = async () => (relay ? await relay.command('resume') : node.program.signal('SIGCONT'))
    const { views } = viewing
    const usesNode = (view: View) => placesOf(view).includes(2)
    await begin()
    const from = views.length
    await viewing.next(({ answer }) => answer === 'ONETRIP_OUTCOME_UNKNOWN')
    await viewing.next(({ answer }) => answer === 'ONETRIP_NOT_SENT') // its connection is closed
    const others = () => views.slice(from).filter((view) => !usesNode(view))
    await expect.poll(() => others().length).toBeGreaterThan(100)
    const served = others()
    await end()
    await viewing.next((view) => acknowledged(view) && usesNode(view))
    expect(served.filter((view) => !acknowledged(view))).toEqual([])
    expect(await auditCluster(servers.nodes, await settle())).toEqual(nothingWrong)
  },
)
