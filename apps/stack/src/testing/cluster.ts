import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseInfo } from '@onetrip/session-store'
import { Redis } from 'ioredis'
import { freePorts } from '../ports.ts'
import type { Program } from '../program.ts'
import { startRedis } from '../redis.ts'
import { until } from '../until.ts'

const SLOTS = 16_384

export interface TestNode {
  readonly port: number
  /** A connection to this node, without the cluster client's knowledge of slots. */
  readonly admin: Redis
  readonly program: Program
  /** Starts it again, with its data, after it has ended. */
  restart(): Promise<void>
}

export interface TestCluster {
  readonly nodes: readonly TestNode[]
  /**
   * Gives a slot with all its keys to another node, as `redis-cli --cluster reshard` would, but one
   * by one, the last by name first.
   *
   * @param onKey Is called, and waited for, before the first key moves and after each.
   */
  moveSlot(slot: number, to: TestNode, onKey?: () => Promise<void>): Promise<void>
  stop(): Promise<void>
}

/** A Redis Cluster for tests: masters on loopback, without replicas. */
export async function testCluster(
  options: { nodes?: number; config?: Record<string, string> } = {},
): Promise<TestCluster> {
  const { nodes: count = 3, config = {} } = options
  const directory = await mkdtemp(join(tmpdir(), 'onetrip-cluster-'))
  const ports = await freePorts(2 * count)
  const start = (port: number, index: number) =>
    startRedis({
      port,
      socket: join(directory, `${index}.sock`),
      directory: join(directory, String(index)),
      config: {
        'cluster-enabled': 'yes',
        'cluster-port': String(ports[count + index]),
        'cluster-node-timeout': '2000',
        'cluster-require-full-coverage': 'no', // the other nodes go on when one is killed
        ...config,
      },
    })
  const nodes = await Promise.all(
    ports.slice(0, count).map(async (port, index) => {
      let program = await start(port, index)
      const admin = new Redis(join(directory, `${index}.sock`), { maxRetriesPerRequest: null })
      admin.on('error', () => {}) // while the node is down
      return {
        port,
        admin,
        get program() {
          return program
        },
        async restart() {
          await program.exited
          program = await start(port, index)
        },
      }
    }),
  )
  const [first] = nodes
  await Promise.all(
    nodes.map(async ({ admin, port }, index) => {
      const from = Math.ceil((index * SLOTS) / count)
      const to = Math.ceil(((index + 1) * SLOTS) / count) - 1
      // As redis-cli does: of two nodes with the same epoch one gives way, and may drop a moved slot.
      await admin.cluster('SET-CONFIG-EPOCH', index + 1)
      await admin.cluster('ADDSLOTSRANGE', from, to)
      await first?.admin.cluster('MEET', '127.0.0.1', port, ports[count + index] ?? 0)
    }),
  )
  const agree = async () => {
    const known = await Promise.all(nodes.map(({ admin }) => knownTo(admin)))
    return known.every((size) => size === count)
  }
  if (!(await until(agree, { timeoutMs: 20_000 }))) throw new Error('the nodes do not agree')

  return {
    nodes,
    moveSlot: (slot, to, onKey) => moveSlot(nodes, { slot, to, onKey }),
    async stop() {
      for (const { admin, program } of nodes) {
        admin.disconnect()
        program.signal('SIGCONT')
      }
      await Promise.all(nodes.map(({ program }) => program.stop()))
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** How many masters this node knows; 0 while it is not ready. */
async function knownTo(admin: Redis): Promise<number> {
  const info = parseInfo(await admin.cluster('INFO'))
  return info.get('cluster_state') === 'ok' ? Number(info.get('cluster_size')) : 0
}

async function moveSlot(
  nodes: readonly TestNode[],
  { slot, to, onKey }: { slot: number; to: TestNode; onKey: (() => Promise<void>) | undefined },
): Promise<void> {
  const ids = await Promise.all(nodes.map(({ admin }) => admin.cluster('MYID')))
  const ranges = await to.admin.cluster('SLOTS')
  const range = ranges.find(([first, last]) => slot >= first && slot <= last)
  const from = nodes[ids.indexOf(range?.[2]?.[2] ?? '')] as TestNode
  if (from === to) return
  const idOf = (node: TestNode) => ids[nodes.indexOf(node)] ?? ''
  await to.admin.cluster('SETSLOT', slot, 'IMPORTING', idOf(from))
  await from.admin.cluster('SETSLOT', slot, 'MIGRATING', idOf(to))
  for (;;) {
    await onKey?.()
    const last = (await from.admin.cluster('GETKEYSINSLOT', slot, 1_000)).sort().at(-1)
    if (last === undefined) break
    await from.admin.migrate('127.0.0.1', to.port, last, 0, 5_000)
  }
  for (const node of [to, from, ...nodes]) {
    await node.admin.cluster('SETSLOT', slot, 'NODE', idOf(to))
  }
}
