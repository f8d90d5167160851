import { Problem } from '@onetrip/stack/problem.ts'
import { fullestShare, MAX_PARTITIONS, powerOfTwo } from './partitions.ts'
import { along, type Line, on, type Points, reaching } from './points.ts'

/** What was measured, in the units of the metrics. */
export interface Measurements {
  /** CPU of a process of the API, with one Redis. */
  apiMicros: number
  /** That a process of the API sends together at full speed. */
  viewsPerBatch: number
  /** CPU per view of a node's threads, by batches per view, without and with I/O threads. */
  plain: Threads
  threaded: Threads
  /** CPU per view of the client alone: with one Redis, and by batches per view with a cluster. */
  clientOfOne: number
  client: Line
  /** Network bytes of a view, by batches per view. */
  bytesIn: Line
  bytesOut: Line
  commandsPerView: number
  /** Bytes that a cluster needs for its slots, all nodes together. */
  bytesOfSlots: number
  /** Bytes of a session by items viewed, and by bytes of data; of the count of an item. */
  bytesByItems: Points
  bytesByData: Points
  bytesPerItem: number
  /** Milliseconds that both keys of a partition block a node, and their payload in MB, by sessions. */
  stallMs: Points
  payloadMb: Points
}

/** CPU per view of a node, by batches per view. */
export interface Threads {
  main: Line
  others: Line
}

export interface Size {
  sessions: number
  viewsPerSecond: number
  /** Different items that are viewed. */
  items: number
  /** Viewed by each session; the store keeps 25. */
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
  /** The longest that the move of a slot may block a node. */
  maxStallMs: number
  /** Null: as many as are advisable. */
  partitions: number | null
}

type Resource = 'memory' | 'main thread' | 'other threads' | 'network'

export interface Plan {
  apiProcesses: number
  apiMicros: number
  primaries: number
  replicas: number
  partitions: number
  /** Fields of the hash `login` of a partition. */
  sessionsPerPartition: number
  stallMs: number
  payloadMb: number
  /** The fullest node's share of all sessions. */
  fullestShare: number
  batchesPerView: number
  /** Of all primaries. */
  memoryBytes: number
  /** Of the fullest node: what is used, as a share of what may be used. */
  use: Readonly<Record<Resource, number>>
  memoryPerNode: number
  mainPerNode: number
  networkPerNode: number
  /** The same for the main thread that counts the most viewed item, which no node can share. */
  hottestItem: number
  runsOutFirst: Resource | 'one item'
}

/** Shares of a core, of a link, and of a node's memory that are planned for. */
const BUSY = 0.7
const FILLED = 0.6
/** The most viewed item may take half of the time of a main thread that is planned for. */
const HOT = BUSY / 2
/** Below this many cores, a node has no I/O threads. */
export const THREADED_CORES = 4
/** Advisable: nodes get whole partitions, so there should be many for each. */
const PARTITIONS_PER_NODE = 16
/** A Redis Cluster has at least so many primaries: a majority must outlive one of them. */
const MIN_CLUSTER = 3
const KEPT_VIEWS = 25

/**
 * What sessions and views need.
 *
 * @throws Problem when no number of nodes is enough.
 */
export function planFor(size: Size, machines: Machines, measured: Measurements): Plan {
  const given = machines.partitions
  const moved = powerOfTwo(size.sessions / reaching(measured.stallMs, machines.maxStallMs))
  for (let partitions = given ?? moved; ; partitions *= 2) {
    const primaries = primariesFor(partitions, size, machines, measured)
    const isLast = given !== null || partitions >= MAX_PARTITIONS
    if (primaries !== null && (isLast || primaries * PARTITIONS_PER_NODE <= partitions)) {
      return details(primaries, partitions, size, machines, measured)
    }
    if (!isLast) continue
    const [sessions, views] = [size.sessions, size.viewsPerSecond].map(grouped)
    throw new Problem(
      `${sessions} sessions and ${views} views per second do not fit: one of ${grouped(partitions)} partitions is more than a node can take. Give larger nodes${given === null ? '' : ' or more partitions'}.`,
    )
  }
}

const grouped = (count: number) => count.toLocaleString('en-US')

/**
 * The fewest nodes of which each, with the partitions it has, does not use more than it may; null when no number
 * of nodes is enough.
 */
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
  // Beyond twice the partitions, hardly any node gets another one.
  for (let nodes = fewest; nodes <= 2 * partitions + MIN_CLUSTER; nodes++) {
    if (nodes > 1 && nodes < MIN_CLUSTER) continue
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
  // The API was measured with one Redis. What the client needs more for a cluster comes on top.
  const more = primaries === 1 ? 0 : on(measured.client, batches) - measured.clientOfOne
  const apiMicros = measured.apiMicros + Math.max(0, more)
  const sessionsPerPartition = Math.ceil(size.sessions / partitions)
  const hottestItem = hottestItemShare(size, machines, measured) / HOT
  const first = (Object.entries(use) as [Resource, number][]).reduce((a, b) =>
    b[1] > a[1] ? b : a,
  )
  return {
    apiProcesses: Math.ceil((size.viewsPerSecond * apiMicros) / 1e6 / BUSY),
    ...{ apiMicros, primaries, partitions, sessionsPerPartition, use, hottestItem },
    replicas: primaries * machines.replicas,
    stallMs: along(measured.stallMs, sessionsPerPartition),
    payloadMb: along(measured.payloadMb, sessionsPerPartition),
    fullestShare: share,
    batchesPerView: batches,
    memoryBytes: memoryOf(size, measured, primaries > 1),
    memoryPerNode: use.memory * machines.nodeMemory * FILLED,
    mainPerNode: use['main thread'] * BUSY,
    networkPerNode: use.network * machines.nodeNetwork * BUSY,
    runsOutFirst: hottestItem > Math.max(1, first[1]) ? 'one item' : first[0],
  }
}

/** Of a node with this share of the sessions, as shares of what may be used. */
function useOf(
  { nodes, share }: { nodes: number; share: number },
  size: Size,
  machines: Machines,
  measured: Measurements,
): Record<Resource, number> {
  const views = size.viewsPerSecond * share
  const batches = batchesPerView(nodes, measured.viewsPerBatch)
  const { coresPerNode: cores } = machines
  const { main, others } = cores >= THREADED_CORES ? measured.threaded : measured.plain
  const [mainSeconds, otherSeconds] = [main, others].map(
    (line) => (views * on(line, batches)) / 1e6,
  )
  const [ofMain = 0, ofOthers = 0] = [mainSeconds, otherSeconds]
  const hot = Math.min(HOT, hottestItemShare(size, machines, measured))
  const sent = on(measured.bytesOut, batches) + machines.replicas * on(measured.bytesIn, batches)
  const bytes = views * Math.max(on(measured.bytesIn, batches), sent)
  return {
    memory: (memoryOf(size, measured, nodes > 1) * share) / (machines.nodeMemory * FILLED),
    'main thread': (ofMain + hot + (cores === 1 ? ofOthers : 0)) / BUSY,
    'other threads': cores === 1 ? 0 : ofOthers / (BUSY * (cores - 1)),
    network: (bytes * 8) / (machines.nodeNetwork * BUSY),
  }
}

/** Bytes of all primaries; one Redis without a cluster has no slots. */
export function memoryOf(
  { sessions, items, itemsPerSession, dataBytes }: Omit<Size, 'viewsPerSecond'>,
  { bytesOfSlots, bytesByItems, bytesByData, bytesPerItem }: Measurements,
  isCluster: boolean,
): number {
  const viewed = along(bytesByItems, Math.min(KEPT_VIEWS, itemsPerSession))
  const data = along(bytesByData, dataBytes) - along(bytesByData, 0)
  return (isCluster ? bytesOfSlots : 0) + sessions * (viewed + data) + items * bytesPerItem
}

/**
 * Batches that the nodes receive per view. A view has two parts, of the session and of the item's count, each
 * on a node of its own; a batch of the API becomes one for each node that has a part of it.
 */
export const batchesPerView = (nodes: number, viewsPerBatch: number) =>
  (nodes * (1 - (1 - 1 / nodes) ** (2 * viewsPerBatch))) / viewsPerBatch

/**
 * Seconds per second that the main thread of one node counts views of the most viewed item, with views by Zipf's
 * law. Views of one item in a batch are counted by one command.
 */
function hottestItemShare(
  { items, viewsPerSecond }: Size,
  { coresPerNode }: Machines,
  { viewsPerBatch, plain, threaded, commandsPerView }: Measurements,
): number {
  const { main } = coresPerNode >= THREADED_CORES ? threaded : plain
  const ofViews = 1 / harmonic(items)
  const commandsOfView = (1 - (1 - ofViews) ** viewsPerBatch) / viewsPerBatch
  return (viewsPerSecond * commandsOfView * (main.constant / commandsPerView)) / 1e6
}

/** 1 + 1/2 + … + 1/count, by Euler's approximation. */
const harmonic = (count: number) => Math.max(1, Math.log(count) + 0.577_216 + 1 / (2 * count))
