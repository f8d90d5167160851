import { parseInfo } from '@onetrip/session-store'
import { isLinked, viewOf } from '@onetrip/stack/cluster/view.ts'
import type { ClusterNode } from '@onetrip/stack/cluster.ts'
import { testCluster } from '@onetrip/stack/testing/cluster.ts'
import { logIn, startViewing } from '@onetrip/stack/testing/viewing.ts'
import { expect, onTestFinished, test } from 'vitest'
import { apiProcessForThisTest } from '../test/api-process.ts'
import { auditCluster } from '../test/cluster-testbed.ts'
import { answered } from './testbed.ts'

const isPrimary = async ({ admin }: ClusterNode) => (await viewOf(admin)).self.primary === null

/**
 * Whether a replica is in sync and can be stopped. During the AOF rewrite after a full synchronization, Redis
 * ignores SIGTERM ("Writing initial AOF, can't exit").
 */
async function hasCaughtUp({ admin }: ClusterNode): Promise<boolean> {
  const persistence = parseInfo(await admin.info('persistence'))
  return persistence.get('aof_rewrite_in_progress') === '0' && (await isLinked(admin))
}

/** Restarts a replica with SIGTERM, and waits until it is in sync. */
async function restartReplica(node: ClusterNode): Promise<void> {
  expect(await isPrimary(node)).toBe(false)
  node.program.signal('SIGTERM')
  await node.restart()
  await expect.poll(() => hasCaughtUp(node)).toBe(true)
}

/** Fails over from a primary to its replica. Redis hands over all acknowledged writes. */
async function failOver(primary: ClusterNode, nodes: readonly ClusterNode[]): Promise<void> {
  const { self } = await viewOf(primary.admin)
  const views = await Promise.all(nodes.map(({ admin }) => viewOf(admin)))
  const replica = nodes[views.findIndex((view) => view.self.primary === self.id)]
  await replica?.admin.cluster('FAILOVER')
  await expect.poll(() => replica && isPrimary(replica)).toBe(true)
  await expect.poll(() => isPrimary(primary)).toBe(false)
  await expect.poll(() => hasCaughtUp(primary)).toBe(true)
}

// docs/runbook.md, "Rolling restart of Redis".
test('all nodes of a cluster are restarted under load, and no acknowledged view is lost', async () => {
  const servers = await testCluster({ replicas: 1 })
  onTestFinished(() => servers.stop())
  const { nodes } = servers
  const { url } = await apiProcessForThisTest({
    REDIS_URL: `redis+cluster://${nodes.map(({ address }) => address).join(',')}`,
    REDIS_DEADLINE_MS: '2000',
  })
  const viewing = startViewing({ url: () => url, viewers: await logIn(url, 8) })
  const acknowledged = answered('200')
  const pids = nodes.map(({ program }) => program.pid)

  const roles = await Promise.all(nodes.map(isPrimary))
  for (const node of nodes.filter((_, index) => !roles[index])) {
    await viewing.next(acknowledged)
    await restartReplica(node)
  }
  for (const node of nodes.filter((_, index) => roles[index])) {
    await viewing.next(acknowledged)
    await failOver(node, nodes)
    await viewing.next(acknowledged)
    await restartReplica(node)
  }

  expect(nodes.filter(({ program }, index) => program.pid === pids[index])).toEqual([])
  await viewing.next(acknowledged)
  const views = await viewing.stop()
  expect((await auditCluster(nodes, views)).discrepancies).toEqual([])
}, 180_000)
