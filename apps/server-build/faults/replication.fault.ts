import { setTimeout as sleep } from 'node:timers/promises'
import { isLinked, viewOf } from '@onetrip/stack/cluster/view.ts'
import { type ClusterNode, startCluster } from '@onetrip/stack/cluster.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { tcpSocket } from '../test/real-redis.ts'
import { ask, open } from './peer.ts'

// Replication and the cluster bus of the patched build, during churn of short connections.

const CLIENTS = 20
/** A hash tag in a slot of the first primary. */
const TAG = '{b}'
const NODE_TIMEOUT_S = 5

async function clusterForThisTest(threads: string, config: Record<string, string> = {}) {
  const ports = await freePorts(12)
  const cluster = await startCluster({
    ports,
    directory: await temporaryFolder(),
    config: {
      'cluster-node-timeout': String(NODE_TIMEOUT_S * 1_000),
      'enable-debug-command': 'yes',
      'io-threads': threads,
      ...config,
    },
  })
  onTestFinished(() => cluster.stop())
  const [primary, , , replica] = cluster.nodes as unknown as [ClusterNode, null, null, ClusterNode]
  return { nodes: cluster.nodes, primary, replica, busPort: ports[6] ?? 0 }
}

/**
 * Opens short connections to a node until `stop()`, several in parallel: each sets a new key and waits for its
 * replication. Other connections, also to the cluster bus, are reset within a command.
 */
function churn(node: ClusterNode, busPort: number) {
  /** The numbers of the keys whose writes were acknowledged after WAIT. */
  const acknowledged: number[] = []
  let sent = 0
  let over = false
  const client = async () => {
    while (!over) {
      const key = sent++
      const commands = `SET ${TAG}:${key} ${'x'.repeat(100)}\r\nWAIT 1 1000`
      // A connection that is refused or reset because the node was killed has no reply.
      const reply = await ask(node.port, commands).catch(() => '')
      if (reply === '+OK\r\n:1\r\n') acknowledged.push(key)
      else if (reply === '') await sleep(1)
    }
  }
  const resetter = async () => {
    while (!over) {
      for (const port of [node.port, busPort]) {
        const peer = await open(port).catch(() => undefined)
        peer?.write(`*3\r\n$3\r\nSET\r\n$9\r\n${TAG}:`)
        peer?.socket.resetAndDestroy()
      }
      await sleep(1)
    }
  }
  const all = [...Array.from({ length: CLIENTS }, client), resetter()]
  return {
    acknowledged,
    async stop() {
      over = true
      await Promise.all(all)
    },
  }
}

const stat = async ({ admin }: ClusterNode, section: string, name: string) =>
  new RegExp(`^${name}:(.*)\r$`, 'm').exec(await admin.info(section))?.[1]

/** Expects that no node ever considered another one failed. */
async function expectBusUnaffected(nodes: readonly ClusterNode[]): Promise<void> {
  for (const { admin } of nodes) {
    const info = String(await admin.cluster('INFO'))
    expect(info).toContain('cluster_state:ok')
    expect(info).not.toMatch(/cluster_stats_messages_fail_(sent|received)/)
    for (const { flags, connected } of (await viewOf(admin)).nodes.values()) {
      expect(flags.join()).not.toContain('fail')
      expect(connected || flags.includes('myself')).toBe(true)
    }
  }
}

describe.each(['1', '2'])('with %s I/O threads', (threads) => {
  test('a full sync of 20 MB under churn: primary and replica are equal, and the bus is unaffected', async () => {
    const { nodes, primary, replica, busPort } = await clusterForThisTest(threads, {
      'repl-backlog-size': '1mb',
    })
    for (let key = 0; key < 200; key += 1) {
      await primary.admin.set(`${TAG}:large:${key}`, 'x'.repeat(100_000))
    }
    await primary.admin.wait(1, 10_000)
    const before = Number(await stat(primary, 'stats', 'sync_full'))
    const load = churn(primary, busPort)
    // Until more is written than the backlog holds, but not for the node timeout: no restart, even on a busy machine.
    replica.program.signal('SIGSTOP')
    await primary.admin.call('CLIENT', 'KILL', 'TYPE', 'replica')
    for (let key = 0; key < 20; key += 1) {
      await primary.admin.set(`${TAG}:large:${key}`, 'y'.repeat(100_000))
    }
    replica.program.signal('SIGCONT')
    await expect.poll(() => stat(primary, 'stats', 'sync_full')).toBe(String(before + 1))
    await expect.poll(() => isLinked(replica.admin)).toBe(true)
    const acknowledged = load.acknowledged.length
    await expect.poll(() => load.acknowledged.length).toBeGreaterThan(acknowledged + 1_000)
    await load.stop()
    expect(await primary.admin.wait(1, 10_000)).toBe(1)
    const digests = [primary, replica].map(({ admin }) => admin.call('DEBUG', 'DIGEST'))
    const [ours, theirs] = await Promise.all(digests)
    expect(theirs).toBe(ours)
    expect(ours).not.toMatch(/^0+$/)
    await expectBusUnaffected(nodes.filter((node) => node !== replica))
  })

  test('a failover under churn loses no write that WAIT acknowledged', async () => {
    const { primary, replica, busPort } = await clusterForThisTest(threads)
    const load = churn(primary, busPort)
    await expect.poll(() => load.acknowledged.length).toBeGreaterThan(3_000)
    // The last writes reach no replica. Without WAIT, hundreds of them would be acknowledged.
    replica.program.signal('SIGSTOP')
    await primary.admin.call('CLIENT', 'KILL', 'TYPE', 'replica')
    await expect.poll(() => stat(primary, 'replication', 'connected_slaves')).toBe('0')
    primary.program.signal('SIGKILL')
    await primary.program.exited
    replica.program.signal('SIGCONT')
    await load.stop()
    await expect.poll(async () => (await viewOf(replica.admin)).self.slots.length).toBe(1)
    const lost: number[] = []
    for (const key of load.acknowledged) {
      if ((await replica.admin.exists(`${TAG}:${key}`)) === 0) lost.push(key)
    }
    expect(lost).toEqual([])
    // The former primary syncs from the new one.
    await primary.restart()
    await expect.poll(() => isLinked(primary.admin)).toBe(true)
    const [one, other] = await Promise.all(
      [primary, replica].map(({ admin }) => admin.call('DEBUG', 'DIGEST')),
    )
    expect(one).toBe(other)
  })

  test('a manual failover under churn loses no write that WAIT acknowledged', async () => {
    const { nodes, primary, replica, busPort } = await clusterForThisTest(threads)
    const load = churn(primary, busPort)
    await expect.poll(() => load.acknowledged.length).toBeGreaterThan(1_000)
    expect(await replica.admin.cluster('FAILOVER')).toBe('OK')
    await expect.poll(async () => (await viewOf(primary.admin)).self.primary).not.toBeNull()
    await load.stop()
    for (const key of load.acknowledged) {
      if ((await replica.admin.exists(`${TAG}:${key}`)) === 0) expect.fail(`${key} is lost`)
    }
    await expectBusUnaffected(nodes)
  })
})

test('the sockets of the cluster bus have their own keep-alive', async () => {
  const { primary, busPort } = await clusterForThisTest('1')
  const keepAliveAt = async (port: number) => {
    const { socket } = await open(port)
    onTestFinished(() => void socket.destroy())
    return (await tcpSocket(port, socket.localPort ?? 0)).keepAlive
  }
  // Derived from the node timeout, as upstream does; clients have the setting tcp-keepalive.
  expect(await keepAliveAt(busPort)).toBeLessThanOrEqual(2 * NODE_TIMEOUT_S)
  expect(await keepAliveAt(primary.port)).toBeGreaterThan(2 * NODE_TIMEOUT_S)
})
