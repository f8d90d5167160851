import { parseInfo } from '@onetrip/session-store'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { Redis } from 'ioredis'
import { startCluster } from '../../drivers/redis/cluster.ts'
import { numbersOption } from '../../drivers/redis/options.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { figure, percent } from '../../experiment/figures.ts'
import { sectionOf } from '../../reporting/columns.ts'
import { fillStore } from './fill.ts'

interface MemoryOptions {
  large: number[]
  partitions: number
  small: number
}

interface Bench {
  server: RedisServer
  redis: Redis
}

/** The ratio of sessions in the two small data sets without views. */
const FACTOR = 4
/** Items viewed by each session of a large data set. */
const VIEWED = 5

/** Redis's memory by number of sessions, items viewed and data. */
export const memory: Experiment<MemoryOptions, Bench> = {
  name: 'memory',
  title: 'Memory of Redis by sessions, items viewed and data',
  summary: 'memory of Redis per session, item viewed and byte of data',
  group: 'The store',
  about: `
Fills a node of a cluster (partitioned layout) with the store's own calls: each user logs in once, views items and
has data. The result is the growth of used_memory.

The small data sets show the memory of a session, of an item that it viewed, of a byte of its data, and of the
count of an item (by one session that viewed very many items). A cluster also needs about 2 kB for each slot that
has keys; two small data sets without views separate this from the memory of sessions. The large data sets show
whether the figures hold for more sessions.

Session ids have 32 characters, names of users about 10, names of items about 13.

Examples:
  npm run load -- memory --large 1000000     # without 5 million sessions, which take minutes and 6 GB`,
  rounds: 1,
  duration: null,
  quick: { small: 2_000, large: [] },
  configure(command) {
    const large = [1_000_000, 5_000_000]
    const about = `sessions of the large data sets, each with ${VIEWED} items viewed`
    command
      .addOption(numbersOption('--large <list>', about, [1, 1e8], large))
      .option('--small <n>', 'sessions of the small data sets', wholeNumber(1_000, 1e6), 100_000)
      .option('--partitions <n>', 'number of partitions', wholeNumber(1, 16_384), 64)
  },

  factors: [
    { name: 'sessions', label: 'sessions' },
    { name: 'items', label: 'items viewed by each' },
    { name: 'dataBytes', label: 'data bytes of each' },
  ],
  subject: 'sessions',
  metrics: [
    { name: 'bytes', label: 'used_memory added, bytes', format: 'whole' },
    { name: 'perSession', label: 'bytes /session', kind: 'count', better: 'lower' },
    { name: 'resident', label: 'resident / used', format: 'fixed' },
    { name: 'seconds', label: 'seconds' },
  ],
  progress: ['perSession', 'seconds'],

  async prepare(context) {
    const [server] = await startCluster(context, 1, { maxmemory: '0' })
    if (!server) throw new RangeError('the cluster has no node')
    const redis = new Redis(server.socket)
    context.defer(() => redis.disconnect())
    return { server, redis }
  },

  cases: (_, { small, large }) => [
    ...[0, 1, 5, 25].map((items) => ({ sessions: small, items, dataBytes: 0 })),
    { sessions: FACTOR * small, items: 0, dataBytes: 0 },
    ...[100, 1_000].map((dataBytes) => ({ sessions: small, items: 0, dataBytes })),
    { sessions: 1, items: small, dataBytes: 0 },
    ...large.map((sessions) => ({ sessions, items: VIEWED, dataBytes: 0 })),
  ],

  async measure(one, { server, redis }, { options, context: { signal }, note }) {
    const [sessions, items, dataBytes] = [one.sessions, one.items, one.dataBytes].map(Number)
    const shape = { sessions: sessions ?? 0, items: items ?? 0, dataBytes: dataBytes ?? 0 }
    await redis.flushall('SYNC')
    const before = await memoryOf(redis)
    const begun = performance.now()
    await fillStore(shape, {
      ...{ url: server.url, partitions: options.partitions, signal },
      progress: (share) => note(percent(share)),
    })
    const after = await memoryOf(redis)
    const bytes = after.used - before.used
    return {
      values: {
        bytes,
        perSession: bytes / shape.sessions,
        resident: after.resident / after.used,
        seconds: (performance.now() - begun) / 1_000,
      },
    }
  },

  sections: (rows) => [
    sectionOf(rows, {
      title: 'Memory',
      caption: 'Growth of used_memory',
      columns: ['bytes', 'perSession', 'resident'],
    }),
  ],
  claims: (rows) =>
    rows.all
      .filter(({ case: { items, sessions } }) => items === VIEWED && sessions !== 1)
      .map(
        (row) =>
          `${row.text('sessions')} sessions with ${VIEWED} viewed items each need ${figure(row.median('perSession') ?? Number.NaN)} bytes per session.`,
      ),
}

async function memoryOf(redis: Redis): Promise<{ used: number; resident: number }> {
  const info = parseInfo(await redis.info('memory'))
  const number = (name: string) => Number(info.get(name))
  return { used: number('used_memory'), resident: number('used_memory_rss') }
}
