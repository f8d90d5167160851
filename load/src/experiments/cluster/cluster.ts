import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import { startCluster } from '../../drivers/redis/cluster.ts'
import { numbersOption } from '../../drivers/redis/options.ts'
import type { Context, Experiment } from '../../experiment/experiment.ts'
import { counted, figure } from '../../experiment/figures.ts'
import { asCpu, asRate, type Case, product } from '../../experiment/shape.ts'
import { range, sectionOf } from '../../reporting/columns.ts'
import { measureViews, openViews, type Views, type Watched } from './views.ts'

interface ClusterOptions {
  nodes: number[]
  inFlight: number[]
  clients: number
  partitions: number
}

/** By the number of nodes. */
type Bench = Map<number, { views: Views; nodes: Watched[] }>

/** The factor `nodes` of a single Redis without a cluster. */
const NO_CLUSTER = 0
const nodesText = (count: string | number) => (count === NO_CLUSTER ? 'no cluster' : String(count))

/** CPU time and network traffic of a page view on a Redis Cluster, by number of nodes. */
export const cluster: Experiment<ClusterOptions, Bench> = {
  name: 'cluster',
  title: 'Redis Cluster: the work of a page view, by nodes',
  summary: "CPU time and network bytes of the store's recordView on a Redis Cluster",
  group: 'The store',
  about: `
Starts Redis Clusters (primaries only, partitioned layout, append-only file on) and records views with the store:
1,000 sessions, 1,000 items by Zipf's law. Several clients simulate several processes of the API, each with a
connection to every node. All clients run in one process, so the rates do not show the effect of more nodes. The
CPU time per view does: nodes share the work, but a client's batch of views is split between them, and each part
costs a read and a write.

"batches" is the number of batches that all nodes received per view (INFO total_reads_processed). More views in
flight make larger batches. The first row is a single Redis without a cluster, with the layout of the source
articles.

Examples:
  npm run load -- cluster --nodes 1,3 --in-flight 16`,
  rounds: 3,
  duration: 2,
  quick: { rounds: 1, duration: 0.3, nodes: [1, 3] },
  configure(command) {
    const views = 'concurrent views of each client'
    command
      .addOption(numbersOption('--nodes <list>', 'numbers of primaries', [1, 16], [1, 2, 3]))
      .addOption(numbersOption('--in-flight <list>', views, [1, 1_000], [1, 4, 16]))
      .option('--clients <n>', 'number of clients', wholeNumber(1, 100), 8)
      .option('--partitions <n>', 'number of partitions', wholeNumber(1, 16_384), 64)
  },

  factors: [
    { name: 'nodes', label: 'nodes', text: nodesText },
    { name: 'inFlight', label: 'views in flight' },
  ],
  subject: 'nodes',
  metrics: [
    { name: 'viewsPerSecond', label: 'views/s', ...asRate },
    { name: 'mainCpuMicros', label: 'main threads CPU µs /view', ...asCpu },
    { name: 'busiestMicros', label: 'of the busiest node', ...asCpu },
    { name: 'otherCpuMicros', label: 'other threads CPU µs /view', ...asCpu },
    { name: 'clientCpuMicros', label: 'client CPU µs /view', ...asCpu },
    { name: 'batches', label: 'batches /view', format: 'fixed' },
    { name: 'commands', label: 'commands /view', format: 'fixed' },
    { name: 'bytesIn', label: 'bytes to Redis /view', format: 'whole' },
    { name: 'bytesOut', label: 'bytes from Redis /view', format: 'whole' },
  ],
  progress: ['mainCpuMicros', 'batches'],

  async prepare(context, options) {
    const bench: Bench = new Map()
    for (const count of [NO_CLUSTER, ...options.nodes]) {
      bench.set(count, await start(context, count, options))
    }
    return bench
  },

  cases: (_, { nodes, inFlight }) => [
    { nodes: NO_CLUSTER, inFlight: Math.max(...inFlight) },
    ...product<Case>({ nodes, inFlight }),
  ],
  warmUp: (cases) =>
    cases.filter(({ nodes }, index) => cases.findIndex((one) => one.nodes === nodes) === index),

  async measure(one, bench, { options: { duration, clients }, context: { signal } }) {
    const { views, nodes } = bench.get(Number(one.nodes)) as { views: Views; nodes: Watched[] }
    const load = { inFlight: clients * Number(one.inFlight), seconds: duration, signal }
    return { values: await measureViews(views, nodes, load) }
  },

  sections: (rows) => [
    sectionOf(rows, {
      title: 'CPU time and network traffic of a view',
      caption: 'Per view, of all nodes together; medians of the rounds',
      columns: [
        range('mainCpuMicros', rows),
        ...['busiestMicros', 'otherCpuMicros', 'clientCpuMicros', 'batches', 'commands'],
        ...['bytesIn', 'bytesOut'],
      ],
    }),
  ],
  claims: (rows) =>
    rows.where({ inFlight: Math.max(...rows.values('inFlight').map(Number)) }).all.map((row) => {
      const of = (metric: string) => figure(row.median(metric) ?? Number.NaN)
      const count = Number(row.case.nodes)
      const where = count === NO_CLUSTER ? 'Without a cluster' : `With ${counted(count, 'node')}`
      return `${where}, a view takes ${of('mainCpuMicros')} µs of CPU time of all main threads, and ${of('busiestMicros')} µs of the busiest main thread.`
    }),
}

const CONFIG = { appendonly: 'yes', maxmemory: '0' }

async function start(context: Context, count: number, options: ClusterOptions) {
  const servers =
    count === NO_CLUSTER
      ? [await context.startRedis({ build: 'patched', config: CONFIG })]
      : await startCluster(context, count, CONFIG)
  const partitions = count === NO_CLUSTER ? null : options.partitions
  const ports = servers.map(({ port }) => port)
  const views = await openViews(ports, { partitions, clients: options.clients }, context)
  const nodes: Watched[] = []
  for (const server of servers) {
    const monitor = await RedisMonitor.connect(server.url)
    context.defer(() => monitor.close())
    nodes.push({ server, monitor })
  }
  return { views, nodes }
}
