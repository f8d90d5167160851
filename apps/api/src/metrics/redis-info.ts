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

interface Field {
  /** Without the prefix `onetrip_redis_`. The rest is the name in oliver006/redis_exporter. */
  name: string
  help: string
  kind: typeof Counter | typeof Gauge
  /** Undefined if this Redis does not report the field. */
  value(info: RedisInfo): number | undefined
}

/** Value of a numeric field; undefined if it is absent or not a number. */
const number = (field: string) => (info: RedisInfo) => finite(Number(info.get(field) ?? Number.NaN))
const finite = (value: number) => (Number.isFinite(value) ? value : undefined)
/** 1 if the field has this value, 0 if it has another one; undefined if it is absent. */
const is = (field: string, word: string) => (info: RedisInfo) =>
  info.has(field) ? Number(info.get(field) === word) : undefined

/** A value of a metric, by command or database. */
interface Row {
  cmd?: string
  db?: string
  value: number
}

const gauge = (name: string, help: string, value: Field['value']): Field => {
  return { name, help, value, kind: Gauge }
}
const counter = (name: string, help: string, value: Field['value']): Field => {
  return { name: `${name}_total`, help, value, kind: Counter }
}

const fields: readonly Field[] = [
  gauge('connected_clients', 'Connections to Redis', number('connected_clients')),
  gauge('max_clients', 'Connections that Redis allows (maxclients)', number('maxclients')),
  gauge('memory_used_bytes', 'Memory that Redis allocated', number('used_memory')),
  gauge('memory_rss_bytes', 'Memory of the Redis process', number('used_memory_rss')),
  gauge('memory_max_bytes', 'Memory limit (maxmemory); 0: no limit', number('maxmemory')),
  gauge(
    'memory_fragmentation_ratio',
    'Process memory divided by allocated memory; 1.15 is 15 % fragmentation',
    number('mem_fragmentation_ratio'),
  ),
  counter('commands_processed', 'Commands that Redis executed', number('total_commands_processed')),
  counter(
    'connections_received',
    'Connections that Redis accepted',
    number('total_connections_received'),
  ),
  counter(
    'rejected_connections',
    'Connections rejected because of maxclients',
    number('rejected_connections'),
  ),
  counter('evicted_keys', 'Keys evicted because of maxmemory', number('evicted_keys')),
  counter('error_replies', 'Error replies of Redis', number('total_error_replies')),
  counter('cpu_seconds', 'CPU time of the Redis process, all threads', (info) =>
    finite(Number(info.get('used_cpu_user')) + Number(info.get('used_cpu_sys'))),
  ),
  counter('cpu_user_seconds', 'User CPU time of the Redis process', number('used_cpu_user')),
  counter('cpu_sys_seconds', 'System CPU time of the Redis process', number('used_cpu_sys')),
  counter('net_input_bytes', 'Bytes that Redis received', number('total_net_input_bytes')),
  counter('net_output_bytes', 'Bytes that Redis sent', number('total_net_output_bytes')),
  gauge(
    'mem_clients_normal_bytes',
    'Memory for clients and their buffers',
    number('mem_clients_normal'),
  ),
  gauge(
    'client_recent_max_output_buffer_bytes',
    'Largest recent output buffer of a client',
    number('client_recent_max_output_buffer'),
  ),
  gauge('primary', '1: primary; 0: replica', is('role', 'master')),
  gauge('connected_replicas', 'Connected replicas', number('connected_slaves')),
  gauge(
    'replication_link_up',
    'Replicas only: 1: connected to the primary',
    is('master_link_status', 'up'),
  ),
  gauge(
    'rdb_last_save_ok',
    '1: the last RDB snapshot succeeded',
    is('rdb_last_bgsave_status', 'ok'),
  ),
  gauge('aof_enabled', '1: the append-only file is enabled', number('aof_enabled')),
  gauge('aof_last_write_ok', '1: the last AOF write succeeded', is('aof_last_write_status', 'ok')),
  gauge(
    'aof_last_rewrite_ok',
    '1: the last AOF rewrite succeeded',
    is('aof_last_bgrewrite_status', 'ok'),
  ),
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
    Kind: Field['kind'],
    name: string,
    help: string,
    rowsOf: (info: RedisInfo) => Row[],
  ) =>
    new Kind({
      name: `onetrip_redis_${name}`,
      help,
      labelNames: ['node', 'cmd', 'db'],
      registers: [registry],
      aggregator: 'max', // all processes read the same Redis
      collect() {
        // Absent while Redis is down: rate() would take a counter that drops to 0 for a reset.
        this.reset()
        for (const [node, { info }] of nodes()) {
          for (const { value, ...labels } of info ? rowsOf(info) : []) {
            this.inc({ node, ...labels }, value)
          }
        }
      },
    })
  new Gauge({
    name: 'onetrip_redis_up',
    help: '1: Redis answered the latest INFO',
    labelNames: ['node'],
    registers: [registry],
    aggregator: 'max',
    collect() {
      this.reset()
      for (const [node, { info }] of nodes()) this.set({ node }, info ? 1 : 0)
    },
  })
  for (const { kind, name, help, value } of fields) {
    add(kind, name, help, (info) => [value(info) ?? []].flat().map((value) => ({ value })))
  }
  const byCommand = (name: string, help: string, value: (stats: CommandStats) => number) =>
    add(Counter, `${name}_total`, help, (info) =>
      Array.from(commandStats(info), ([cmd, stats]) => ({ cmd, value: value(stats) })),
    )
  byCommand('commands', 'Calls by command', ({ calls }) => calls)
  byCommand('commands_duration_seconds', 'Execution time by command', ({ micros }) => micros / 1e6)
  add(Gauge, 'keys', 'Keys by database', (info) =>
    [...info].flatMap(([db, value]) => {
      const keys = /^db\d+$/.test(db) && /keys=(\d+)/.exec(value)?.[1]
      return keys ? { db, value: Number(keys) } : []
    }),
  )
}
