import { partitionedKeys } from '@onetrip/cluster'
import { storeErrors } from '@onetrip/session-store'
import type { ClusterNode } from '@onetrip/stack/cluster.ts'
import { type Audit, audit } from '@onetrip/stack/testing/audit/audit.ts'
import { Ledger, type View } from '@onetrip/stack/testing/audit/ledger.ts'
import { type TestCluster, testCluster } from '@onetrip/stack/testing/cluster.ts'
import { logIn, startViewing, type Viewing } from '@onetrip/stack/testing/viewing.ts'
import { Cluster } from 'ioredis'
import { expect, onTestFinished } from 'vitest'
import { apiProcessForThisTest } from './api-process.ts'

const keys = partitionedKeys()

const PRIMARIES = 3
const SLOTS = 16_384
const VIEWERS = 32
const ITEMS = 20
/** Number of clients. */
export const CONCURRENCY = 32
/** Long enough for a busy machine, so that only faults exceed it. */
const DEADLINE_MS = 5_000

/** A cluster of three primaries, the API as a process, and clients that send views continuously. */
export interface ClusterTestbed {
  readonly servers: TestCluster
  readonly viewing: Viewing
  /** The indexes of the nodes that a view writes to, with the slots of the start. */
  placesOf(view: Pick<View, 'viewer' | 'item'>): number[]
  /** A key that the node has at the start, and that the store does not use. */
  keyOn(place: number): string
  /**
   * Stops the views and the API, and checks what must hold after every fault: each view was answered, and each failed
   * view with an error of the table.
   */
  settle(): Promise<readonly View[]>
}

export interface ClusterTestbedOptions {
  /** Number of replicas per primary; `servers.nodes` lists them after all primaries. Default 0. */
  replicas?: number
  /** Called before the API starts. */
  prepare?: (servers: TestCluster) => Promise<void>
}

/** Starts a testbed, which is stopped when the current test ends. */
export async function clusterTestbed(options: ClusterTestbedOptions = {}): Promise<ClusterTestbed> {
  const { replicas = 0, prepare } = options
  const servers = await testCluster({
    replicas,
    // A primary whose slots have all moved must not become a replica.
    config: { appendfsync: 'always', 'cluster-allow-replica-migration': 'no' },
  })
  onTestFinished(() => servers.stop())
  await prepare?.(servers)
  const { api, url } = await apiProcessForThisTest({
    REDIS_URL: `redis+cluster://${servers.nodes.map(({ address }) => address).join(',')}`,
    REDIS_DEADLINE_MS: String(DEADLINE_MS),
    JANITOR_INTERVAL_SECONDS: '0',
  })
  const viewers = await logIn(url, VIEWERS)
  const places = new Map<string, number>()
  const items = Array.from({ length: ITEMS }, (_, index) => `item-${index}`)
  for (const key of [...viewers.map(({ id }) => keys.login(id)), ...items.map(keys.popular)]) {
    const slot = Number(await servers.nodes[0]?.admin.cluster('KEYSLOT', key))
    places.set(key, Math.floor((slot * PRIMARIES) / SLOTS))
  }
  const viewing = startViewing({ url: () => url, viewers, items: ITEMS, concurrency: CONCURRENCY })
  onTestFinished(async () => void (await viewing.stop().catch(() => {})))
  await viewing.next(acknowledged)
  return {
    servers,
    viewing,
    placesOf: ({ viewer, item }) =>
      [keys.login(viewer.id), keys.popular(item)].map((key) => places.get(key) ?? -1),
    keyOn(place) {
      const [key] = [...places].find(([, at]) => at === place) ?? []
      return `test:${key}`
    },
    async settle() {
      const views = await viewing.stop()
      expect(views.filter((view) => !acknowledged(view) && !isInTable(view))).toEqual([])
      api.signal('SIGTERM')
      expect(await api.exited).toEqual({ code: 0, signal: null })
      return views
    },
  }
}

export const acknowledged = ({ outcome }: View): boolean => outcome === 'acknowledged'

/** Whether a view failed with a 503 of the store's error table, and wrote nothing if the table says so. */
function isInTable({ answer, outcome }: View): boolean {
  const kind = Object.entries(storeErrors).find(([code]) => code === answer)?.[1]
  return kind?.statusCode === 503 && (kind.mayHaveWritten || outcome === 'not written')
}

/** Compares the data in a cluster with the ledger of the clients, once all running nodes agree who has which slots. */
export async function auditCluster(
  nodes: readonly ClusterNode[],
  views: readonly View[],
): Promise<Audit> {
  const running = nodes.filter(({ admin }) => admin.status === 'ready')
  const opinions = async () => new Set(await Promise.all(running.map(slotsAndPrimaries)))
  await expect.poll(async () => (await opinions()).size, { timeout: 60_000 }).toBe(1)
  const client = new Cluster(running.map(({ port }) => ({ host: '127.0.0.1', port })))
  try {
    return await audit(client, Ledger.of(views), keys)
  } finally {
    client.disconnect()
  }
}

/** The ranges of slots and the ports of their primaries, as the node sees them. */
async function slotsAndPrimaries({ admin }: ClusterNode): Promise<string> {
  const ranges = await admin.cluster('SLOTS')
  return JSON.stringify(ranges.map(([first, last, primary]) => [first, last, primary?.[1]]))
}
