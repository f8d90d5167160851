import { type CommandStats, commandStats } from '@onetrip/session-store'
import { Counter, Gauge, type Registry } from 'prom-client'

/** Sections of INFO to read: only those whose cost does not grow with clients or keys. */
export const INFO_SECTIONS = [
  'clients',
  'memory',
  'persistence',
  'stats',
  'replication',
  'cpu',
  'commandstats',
  'keyspace',
]

/** The fields of a reply to INFO. */
export type RedisInfo = ReadonlyMap<string, string>

/** Kind, name without the prefix `onetrip_redis_` (the rest as in oliver006/redis_exporter), help, and value. */
type Field = readonly [
  kind: typeof Counter | typeof Gauge,
  name: string,
  help: string,
  /** Undefined if this Redis does not report the field. */
  value: (info: RedisInfo) => number | undefined,
]

/** A value of a metric, by command or database. */
interface Row {
  cmd?: string
  db?: string
  value: number
}

/** Value of a numeric field; undefined if it is absent or not a number. */
const number = (field: string) => (info: RedisInfo) => finite(Number(info.get(field) ?? Number.NaN))
const finite = (value: number) => (Number.isFinite(value) ? value : undefined)
/** 1 if the field has this value, 0 if it has another one; undefined if it is absent. */
const is = (field: string, word: string) => (info: RedisInfo) =>
  info.has(field) ? Number(info.get(field) === word) : undefined

const fields: readonly Field[] = [
  [Gauge, 'connected_clients', 'Connections to Redis', number('connected_clients')],
  [Gauge, 'max_clients', 'Connections that Redis allows (maxclients)', number('maxclients')],
  [Gauge, 'memory_used_bytes', 'Memory that Redis allocated', number('used_memory')],
  [Gauge, 'memory_rss_bytes', 'Memory of the Redis process', number('used_memory_rss')],
  [Gauge, 'memory_max_bytes', 'Memory limit (maxmemory); 0: no limit', number('maxmemory')],
  [
    Gauge,
    'memory_fragmentation_ratio',
    'Process memory divided by allocated memory; 1.15 is 15 % fragmentation',
    number('mem_fragmentation_ratio'),
  ],
  [
    Counter,
    'commands_processed_total',
    'Commands that Redis executed',
    number('total_commands_processed'),
  ],
  [
    Counter,
    'connections_received_total',
    'Connections that Redis accepted',
    number('total_connections_received'),
  ],
  [
    Counter,
    'rejected_connections_total',
    'Connections rejected because of maxclients',
    number('rejected_connections'),
  ],
  [Counter, 'evicted_keys_total', 'Keys evicted because of maxmemory', number('evicted_keys')],
  [Counter, 'error_replies_total', 'Error replies of Redis', number('total_error_replies')],
  [
    Counter,
    'cpu_seconds_total',
    'CPU time of the Redis process, all threads',
    (info) => finite(Number(info.get('used_cpu_user')) + Number(info.get('used_cpu_sys'))),
  ],
  [
    Counter,
    'cpu_user_seconds_total',
    'User CPU time of the Redis process',
    number('used_cpu_user'),
  ],
  [
    Counter,
    'cpu_sys_seconds_total',
    'System CPU time of the Redis process',
    number('used_cpu_sys'),
  ],
  [Counter, 'net_input_bytes_total', 'Bytes that Redis received', number('total_net_input_bytes')],
  [Counter, 'net_output_bytes_total', 'Bytes that Redis sent', number('total_net_output_bytes')],
  [
    Gauge,
    'mem_clients_normal_bytes',
    'Memory for clients and their buffers',
    number('mem_clients_normal'),
  ],
  [
    Gauge,
    'client_recent_max_output_buffer_bytes',
    'Largest recent output buffer of a client',
    number('client_recent_max_output_buffer'),
  ],
  [Gauge, 'primary', '1: primary; 0: replica', is('role', 'master')],
  [Gauge, 'connected_replicas', 'Connected replicas', number('connected_slaves')],
  [
    Gauge,
    'replication_link_up',
    'Replicas only: 1: connected to the primary',
    is('master_link_status', 'up'),
  ],
  [
    Gauge,
    'rdb_last_save_ok',
    '1: the last RDB snapshot succeeded',
    is('rdb_last_bgsave_status', 'ok'),
  ],
  [Gauge, 'aof_enabled', '1: the append-only file is enabled', number('aof_enabled')],
  [
    Gauge,
    'aof_last_write_ok',
    '1: the last AOF write succeeded',
    is('aof_last_write_status', 'ok'),
  ],
  [
    Gauge,
    'aof_last_rewrite_ok',
    '1: the last AOF rewrite succeeded',
    is('aof_last_bgrewrite_status', 'ok'),
  ],
]

/**
 * Registers metrics of the latest INFO of each node, labelled with the node's name.
 *
 * @param nodes `info` is undefined while the node is down.
 */
export function redisMetrics(
  registry: Registry,
  nodes: () => ReadonlyMap<string, { readonly info: RedisInfo | undefined }>,
): void {
  const add = (
    Kind: Field[0],
    name: string,
    help: string,
    rowsOf: (info: RedisInfo | undefined) => Row[],
  ) =>
    new Kind({
      name: `onetrip_redis_${name}`,
      help,
      labelNames: ['node', 'cmd', 'db'],
      registers: [registry],
      aggregator: 'max', // all processes read the same Redis
      collect() {
        this.reset()
        for (const [node, { info }] of nodes()) {
          for (const { value, ...labels } of rowsOf(info)) this.inc({ node, ...labels }, value)
        }
      },
    })
  add(Gauge, 'up', '1: Redis answered the latest INFO', (info) => [{ value: info ? 1 : 0 }])
  for (const [kind, name, help, read] of fields) {
    add(kind, name, help, (info) => {
      // Absent while Redis is down: rate() would take a counter that drops to 0 for a reset.
      const value = info && read(info)
      return value === undefined ? [] : [{ value }]
    })
  }
  const byCommand = (name: string, help: string, value: (stats: CommandStats) => number) =>
    add(Counter, name, help, (info = new Map()) =>
      Array.from(commandStats(info), ([cmd, stats]) => ({ cmd, value: value(stats) })),
    )
  byCommand('commands_total', 'Calls by command', ({ calls }) => calls)
  byCommand(
    'commands_duration_seconds_total',
    'Execution time by command',
    ({ micros }) => micros / 1e6,
  )
  add(Gauge, 'keys', 'Keys by database', (info = new Map()) =>
    [...info].flatMap(([db, value]) => {
      const keys = /^db\d+$/.test(db) && /keys=(\d+)/.exec(value)?.[1]
      return keys ? { db, value: Number(keys) } : []
    }),
  )
}
