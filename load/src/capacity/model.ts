import { Problem } from '@onetrip/stack/problem.ts'
import { ioThreadsFor } from '../../../apps/server-build/src/io-threads.ts'
import { fullestShare, MAX_PARTITIONS, powerOfTwo } from './partitions.ts'
import { interpolate, type Line, largestWithin, type Points, valueAt } from './points.ts'

/** The measured parameters of the model. CPU times are in microseconds per view. */
export interface Measurements {
  /** CPU time of an API process with one Redis. */
  apiMicros: number
  /** The size of the batches of an API process at full speed. */
  viewsPerBatch: number
  /** CPU time of a node without I/O threads. */
  plain: Threads
  /** CPU time of a node with the I/O threads that Onetrip sets for its cores. */
  threaded: Threads
  /** CPU time of the client with one Redis. */
  clientOfOne: number
  /** CPU time of the client with a cluster, by batches per view. */
  client: Line
  /** Network bytes per view to Redis, by batches per view. */
  bytesIn: Line
  /** Network bytes per view from Redis, by batches per view. */
  bytesOut: Line
  commandsPerView: number
  /** Memory for the slots of a cluster, in bytes, of all nodes together. */
  bytesOfSlots: number
  /** Bytes of a session, by items viewed. */
  bytesByItems: Points
  /** Bytes of a session, by bytes of data. */
  bytesByData: Points
  /** Bytes of the view count of an item. */
  bytesPerItem: number
  /** Milliseconds that the move of a partition blocks a node, by sessions. */
  stallMs: Points
  /** Payload of the larger key of a partition in MB, by sessions. */
  payloadMb: Points
}

/** CPU time of a node's threads per view, by batches per view. */
export interface Threads {
  main: Line
  others: Line
}

export interface Size {
  sessions: number
  viewsPerSecond: number
  /** The number of different items. */
  items: number
  /** Items viewed by each session. The store keeps 25. */
  itemsPerSession: number
  dataBytes: number
}

export interface Machines {
  coresPerNode: number
  /** Bytes. */
  nodeMemory: number
  /** Bits per second, each way. */
  nodeNetwork: number
  /** Of each primary. */
  replicas: number
  /** The longest time that the move of a slot may block a node. */
  maxStallMs: number
  /** Null for the recommended number. */
  partitions: number | null
}

export const machineDefaults: Machines = {
  ...{ coresPerNode: 4, nodeMemory: 32e9, nodeNetwork: 10e9, replicas: 1 },
  ...{ maxStallMs: 100, partitions: null },
}

type Resource = 'memory' | 'main thread' | 'other threads' | 'network'

export interface Plan {
  apiProcesses: number
  apiMicros: number
  primaries: number
  replicas: number
  partitions: number
  sessionsPerPartition: number
  stallMs: number
  payloadMb: number
  /** The share of all sessions on the fullest node. */
  fullestShare: number
  batchesPerView: number
  /** Of all primaries. */
  memoryBytes: number
  /** Resources used by the fullest node, as shares of the planned maximum. */
  use: Readonly<Record<Resource, number>>
  /** Of the fullest node, in bytes. */
  memoryPerNode: number
  /** Share of a core. */
  mainPerNode: number
  /** Bits per second. */
  networkPerNode: number
  /** CPU time for counting the views of the most viewed item, as a share of the planned maximum. */
  hottestItem: number
  runsOutFirst: Resource | 'one item'
}

/** The planned maximum of a core and of a link. */
const PLANNED_USE = 0.7
/** The planned maximum of a node's memory. */
const PLANNED_MEMORY = 0.6
/** The planned maximum of a main thread's time for the most viewed item. */
const PLANNED_ITEM_USE = PLANNED_USE / 2
/** Whether Onetrip turns on I/O threads on a node. */
export const hasIoThreads = (cores: number) => ioThreadsFor(cores) > 1
/** Nodes have whole partitions. With many partitions per node, their load is more even. */
const PARTITIONS_PER_NODE = 16
/** In a cluster, a majority of primaries must survive the failure of one. */
const MIN_CLUSTER_PRIMARIES = 3
const KEPT_VIEWS = 25

/**
 * Computes processes, nodes and partitions for a size.
 *
 * @throws Problem when no number of nodes is sufficient.
 */
export function planFor(size: Size, machines: Machines, measured: Measurements): Plan {
  const given = machines.partitions
  const moved = powerOfTwo(size.sessions / largestWithin(measured.stallMs, machines.maxStallMs))
  for (let partitions = given ?? moved; ; partitions *= 2) {
    const primaries = primariesFor(partitions, size, machines, measured)
    const isLast = given !== null || partitions >= MAX_PARTITIONS
    if (primaries !== null && (isLast || primaries * PARTITIONS_PER_NODE <= partitions)) {
      return details(primaries, partitions, size, machines, measured)
    }
    if (!isLast) continue
    const [sessions, views] = [size.sessions, size.viewsPerSecond].map(grouped)
    throw new Problem(
      `${sessions} sessions and ${views} views per second do not fit: one of ${grouped(partitions)} partitions is too large for a node. Use larger nodes${given === null ? '' : ' or more partitions'}.`,
    )
  }
}

const grouped = (count: number) => count.toLocaleString('en-US')

/** The smallest number of primaries that keeps every node within its planned use; null if none does. */
function primariesFor(
  partitions: number,
  size: Size,
  machines: Machines,
  measured: Measurements,
): number | null {
  const leastUse = (share: number) => useOf({ nodes: 1, share }, size, machines, measured)
  if (!isEnough(leastUse(1 / partitions))) return null
  const { memory, network } = leastUse(1)
  const fewest = Math.ceil(Math.max(memory, network, 1))
  // With more than two nodes per partition, additional nodes hardly change the fullest one.
  for (let nodes = fewest; nodes <= 2 * partitions + MIN_CLUSTER_PRIMARIES; nodes++) {
    if (nodes > 1 && nodes < MIN_CLUSTER_PRIMARIES) continue
    const share = fullestShare(partitions, nodes)
    if (isEnough(useOf({ nodes, share }, size, machines, measured))) return nodes
  }
  return null
}

const isEnough = (use: Plan['use']) => Object.values(use).every((part) => part <= 1)

function details(
  primaries: number,
  partitions: number,
  size: Size,
  machines: Machines,
  measured: Measurements,
): Plan {
  const share = fullestShare(partitions, primaries)
  const use = useOf({ nodes: primaries, share }, size, machines, measured)
  const batches = batchesPerView(primaries, measured.viewsPerBatch)
  // The API was measured with one Redis. Add the additional CPU time of the client for a cluster.
  const more = primaries === 1 ? 0 : valueAt(measured.client, batches) - measured.clientOfOne
  const apiMicros = measured.apiMicros + Math.max(0, more)
  const sessionsPerPartition = Math.ceil(size.sessions / partitions)
  const hottestItem = hottestItemShare(size, machines, measured) / PLANNED_ITEM_USE
  const first = (Object.entries(use) as [Resource, number][]).reduce((a, b) =>
    b[1] > a[1] ? b : a,
  )
  return {
    apiProcesses: Math.ceil((size.viewsPerSecond * apiMicros) / 1e6 / PLANNED_USE),
    ...{ apiMicros, primaries, partitions, sessionsPerPartition, use, hottestItem },
    replicas: primaries * machines.replicas,
    stallMs: interpolate(measured.stallMs, sessionsPerPartition),
    payloadMb: interpolate(measured.payloadMb, sessionsPerPartition),
    fullestShare: share,
    batchesPerView: batches,
    memoryBytes: memoryOf(size, measured, primaries > 1),
    memoryPerNode: use.memory * machines.nodeMemory * PLANNED_MEMORY,
    mainPerNode: use['main thread'] * PLANNED_USE,
    networkPerNode: use.network * machines.nodeNetwork * PLANNED_USE,
    runsOutFirst: hottestItem > Math.max(1, first[1]) ? 'one item' : first[0],
  }
}

/** The resources used by a node with this share of the sessions, as shares of the planned maximum. */
function useOf(
  { nodes, share }: { nodes: number; share: number },
  size: Size,
  machines: Machines,
  measured: Measurements,
): Record<Resource, number> {
  const views = size.viewsPerSecond * share
  const batches = batchesPerView(nodes, measured.viewsPerBatch)
  const { coresPerNode: cores } = machines
  const { main, others } = hasIoThreads(cores) ? measured.threaded : measured.plain
  const otherCores = (hasIoThreads(cores) ? ioThreadsFor(cores) : cores) - 1
  const [mainSeconds, otherSeconds] = [main, others].map(
    (line) => (views * valueAt(line, batches)) / 1e6,
  )
  const [ofMain = 0, ofOthers = 0] = [mainSeconds, otherSeconds]
  const hot = Math.min(PLANNED_ITEM_USE, hottestItemShare(size, machines, measured))
  const sent =
    valueAt(measured.bytesOut, batches) + machines.replicas * valueAt(measured.bytesIn, batches)
  const bytes = views * Math.max(valueAt(measured.bytesIn, batches), sent)
  return {
    memory: (memoryOf(size, measured, nodes > 1) * share) / (machines.nodeMemory * PLANNED_MEMORY),
    'main thread': (ofMain + hot + (cores === 1 ? ofOthers : 0)) / PLANNED_USE,
    'other threads': cores === 1 ? 0 : ofOthers / (PLANNED_USE * otherCores),
    network: (bytes * 8) / (machines.nodeNetwork * PLANNED_USE),
  }
}

/** Memory of all primaries in bytes. Only a cluster needs memory for slots. */
export function memoryOf(
  { sessions, items, itemsPerSession, dataBytes }: Omit<Size, 'viewsPerSecond'>,
  { bytesOfSlots, bytesByItems, bytesByData, bytesPerItem }: Measurements,
  isCluster: boolean,
): number {
  const viewed = interpolate(bytesByItems, Math.min(KEPT_VIEWS, itemsPerSession))
  const data = interpolate(bytesByData, dataBytes) - interpolate(bytesByData, 0)
  return (isCluster ? bytesOfSlots : 0) + sessions * (viewed + data) + items * bytesPerItem
}

/**
 * The number of batches per view that all nodes receive. A view has two parts (session, and count of the item),
 * usually on different nodes. A batch of the API is split into one batch for each node that has a part of it.
 */
export const batchesPerView = (nodes: number, viewsPerBatch: number) =>
  (nodes * (1 - (1 - 1 / nodes) ** (2 * viewsPerBatch))) / viewsPerBatch

/**
 * The share of a main thread's time for counting views of the most viewed item, with views by Zipf's law. One
 * command counts all views of an item in a batch.
 */
function hottestItemShare(
  { items, viewsPerSecond }: Size,
  { coresPerNode }: Machines,
  { viewsPerBatch, plain, threaded, commandsPerView }: Measurements,
): number {
  const { main } = hasIoThreads(coresPerNode) ? threaded : plain
  const ofViews = 1 / harmonic(items)
  const commandsOfView = (1 - (1 - ofViews) ** viewsPerBatch) / viewsPerBatch
  return (viewsPerSecond * commandsOfView * (main.constant / commandsPerView)) / 1e6
}

/** 1 + 1/2 + … + 1/count, by Euler's approximation. */
const harmonic = (count: number) => Math.max(1, Math.log(count) + 0.577_216 + 1 / (2 * count))
