import { setTimeout as delay } from 'node:timers/promises'
import { parseInfo, partitionedKeys } from '@onetrip/session-store'
import { Redis } from 'ioredis'
import { executionMicros, fillByScript } from '../../drivers/redis/commands.ts'
import { numbersOption } from '../../drivers/redis/options.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'
import type { Row } from '../../experiment/rows.ts'
import { type Measured, product } from '../../experiment/shape.ts'
import { errors, range, sectionOf } from '../../reporting/columns.ts'

interface SlotMoveOptions {
  fields: number[]
  queryBuffer: string
}

interface Node {
  port: number
  redis: Redis
  /** The connection that sends PING during the move. */
  other: Redis
}

interface Bench {
  source: Node
  target: Node
}

const [part] = partitionedKeys(1).parts()
/** The two keys of a partition that grow with its sessions, and the commands that add members. */
const keys: Readonly<Record<string, readonly [key: string, command: string]>> = {
  'login (hash)': [part?.login ?? '', 'HSET'],
  'recent (sorted set)': [part?.recent ?? '', 'ZADD'],
}

/** The time that the move of a partition's keys blocks both nodes, by number of sessions. */
export const slotMove: Experiment<SlotMoveOptions, Bench> = {
  name: 'slot-move',
  title: 'Redis: moving the keys of a partition to another node',
  summary: 'the time that the move of a slot blocks both nodes',
  group: 'Redis',
  about: `
A slot of Redis Cluster moves key by key, with MIGRATE. A key moves as a whole: the source serves no other clients
until the target has the key, and the target serves no clients while it restores the key. The keys are those of a
partition of sessions: the hash login (id and user) and the sorted set recent (id and time).

During the move, a client of each node sends one PING after another. The longest PING shows how long the node was
blocked. MIGRATE and RESTORE are execution times (INFO commandstats). The payload is the number of bytes that the
target received. The append-only file is on.

Redis refuses a payload above the target's client-query-buffer-limit or proto-max-bulk-len (512 MB). Onetrip's
redis.conf sets client-query-buffer-limit to 64 MB; this experiment uses Redis's default, 1 GB.

Examples:
  npm run load -- slot-move --fields 10000,100000
  npm run load -- slot-move --query-buffer 64mb --fields 1000000,5000000   # with Onetrip's redis.conf`,
  rounds: 3,
  duration: null,
  quick: { rounds: 1, fields: [10_000, 100_000] },
  configure(command) {
    const sizes = [10_000, 100_000, 1_000_000, 5_000_000]
    command
      .addOption(numbersOption('--fields <list>', 'sessions of the partition', [1, 2e7], sizes))
      .option('--query-buffer <size>', "the target's client-query-buffer-limit", '1gb')
  },

  factors: [{ name: 'key' }, { name: 'fields', label: 'sessions' }],
  subject: 'key',
  metrics: [
    { name: 'megabytes', label: 'payload MB' },
    { name: 'sourceMs', label: 'source blocked ms' },
    { name: 'targetMs', label: 'target blocked ms' },
    { name: 'migrateMs', label: 'MIGRATE ms' },
    { name: 'restoreMs', label: 'RESTORE ms' },
  ],
  progress: ['sourceMs', 'targetMs'],

  async prepare(context, { queryBuffer }) {
    const start = async (): Promise<Node> => {
      const config = {
        ...{ maxmemory: '0', appendonly: 'yes', 'client-query-buffer-limit': queryBuffer },
      }
      const { port, socket } = await context.startRedis({ build: 'patched', config })
      const [redis, other] = [new Redis(socket), new Redis(socket)]
      context.defer(() => [redis, other].forEach((client) => void client.disconnect()))
      return { port, redis, other }
    }
    return { source: await start(), target: await start() }
  },

  cases: (_, { fields }) => product({ key: Object.keys(keys), fields }),

  async measure({ key: name, fields }, { source, target }, { context: { signal } }) {
    const [key = '', command = ''] = keys[String(name)] ?? []
    for (const { redis } of [source, target]) await redis.flushall('SYNC')
    const elements = Number(fields)
    await fillByScript(source.redis, FILL, { key, args: [command], elements }, signal)
    for (const { redis } of [source, target]) await redis.config('RESETSTAT')
    return await moveKey({ source, target }, key)
  },

  sections: (rows) => [
    sectionOf(rows, {
      title: 'How long a move blocks the nodes',
      caption: 'One key moves with MIGRATE',
      columns: [
        'megabytes',
        range('sourceMs', rows),
        range('targetMs', rows),
        ...['migrateMs', 'restoreMs', errors],
      ],
    }),
  ],
  claims: (rows) =>
    rows
      .by('key')
      .map(({ rows: own }) => claimOf(own.all.findLast((row) => row.median('sourceMs')))),
}

function claimOf(row: Row | undefined): string | null {
  if (!row) return null
  const [source, target] = ['sourceMs', 'targetMs'].map((name) => row.median(name) ?? Number.NaN)
  const nanos = (Number(source) * 1e6) / Number(row.case.fields)
  return `Moving ${row.text('key')} with ${row.text('fields')} sessions blocked the source for ${figure(Number(source))} ms and the target for ${figure(Number(target))} ms, which is ${figure(nanos)} ns per session at the source.`
}

const FILL = `
local args = {}
for i = ARGV[2], ARGV[3] do
  local id = string.sub(redis.sha1hex(i), 1, 32)
  if ARGV[1] == 'HSET' then
    args[#args + 1] = id
    args[#args + 1] = 'user-' .. string.format('%.0f', i)
  else
    args[#args + 1] = string.format('%.3f', 1700000000 + i / 1000)
    args[#args + 1] = id
  end
  if #args >= 2000 or i == tonumber(ARGV[3]) then
    redis.call(ARGV[1], KEYS[1], unpack(args))
    args = {}
  end
end`

/** PINGs are sent this long before and after the move. */
const AROUND_MS = 100
/** The timeout of MIGRATE, far longer than the largest key needs. */
const MIGRATE_TIMEOUT_MS = 600_000

async function moveKey({ source, target }: Bench, key: string): Promise<Measured> {
  const done = new AbortController()
  const longest = [source, target].map(({ other }) => longestPing(other, done.signal))
  await delay(AROUND_MS)
  const error = await source.redis
    .migrate('127.0.0.1', target.port, key, 0, MIGRATE_TIMEOUT_MS)
    .then(() => null)
    .catch((reason: Error) => reason)
  await delay(AROUND_MS)
  done.abort()
  const [sourceMs = null, targetMs = null] = await Promise.all(longest)
  if (error) return { values: {}, errors: { refused: 1 }, details: { error: error.message } }
  const info = parseInfo(await target.redis.info('stats'))
  return {
    values: {
      ...{ sourceMs, targetMs },
      migrateMs: await executionMs(source.redis, 'migrate'),
      restoreMs: await executionMs(target.redis, 'restore'),
      megabytes: Number(info.get('total_net_input_bytes')) / 1e6,
    },
  }
}

/** The latency of the longest PING in milliseconds. */
async function longestPing(redis: Redis, signal: AbortSignal): Promise<number> {
  let longest = 0
  while (!signal.aborted) {
    const begun = performance.now()
    await redis.ping()
    longest = Math.max(longest, performance.now() - begun)
    await delay(1)
  }
  return longest
}

/** Execution time of the only call of a command since the last `CONFIG RESETSTAT`. */
async function executionMs(redis: Redis, command: string): Promise<number | null> {
  const micros = await executionMicros(redis, command)
  return micros === null ? null : micros / 1_000
}
