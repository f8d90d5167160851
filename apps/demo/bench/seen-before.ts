/**
 * Compares data structures for "has the user seen this item before?" (a Bloom filter with SETBIT or BITFIELD,
 * and a HyperLogLog) with several strategies. Run: node apps/demo/bench/seen-before.ts [seconds] [rounds]
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type Command,
  createSessionStore,
  type Operation,
  parseInfo,
  type StrategyName,
} from '@onetrip/session-store'
import { startRedis } from '@onetrip/stack/redis.ts'
import { startRelay } from '@onetrip/stack/relay/process.ts'
import { Redis } from 'ioredis'
import { shopKeys } from '../src/shop/keys.ts'
import { filter, seeItem } from '../src/shop/viewers.ts'

const [seconds = 1, rounds = 5] = process.argv.slice(2).map(Number)
if (!(seconds > 0 && rounds > 0)) {
  console.error('Usage: node apps/demo/bench/seen-before.ts [seconds] [rounds]')
  process.exit(1)
}
const CALLERS = 64

const hyperLogLog = (item: string, user: string): Operation<unknown> => {
  const key = shopKeys.viewers(item)
  return {
    commands: [
      ['PFADD', key, user],
      ['PFCOUNT', key],
      ['EXPIRE', key, 604_800],
    ],
    mergeable: true,
    readOnly: false,
    read: (replies) => replies,
  }
}

/** Like `seeItem`, with one BITFIELD instead of a SETBIT per hash. */
const bitfield = (item: string, user: string): Operation<unknown> => {
  const update = seeItem(item, user)
  const bits = filter.positions(user).flatMap((position) => ['SET', 'u1', position, 1])
  const set: Command = ['BITFIELD', shopKeys.viewers(item), ...bits]
  return { ...update, commands: [set, ...update.commands.slice(filter.hashes)], read: (all) => all }
}

const structures = { SETBIT: seeItem, BITFIELD: bitfield, HyperLogLog: hyperLogLog }
const strategies: StrategyName[] = ['naive', 'sequential', 'pipeline', 'batch']

const directory = await mkdtemp(join(tmpdir(), 'onetrip-bench-'))
const socket = join(directory, 'redis.sock')
const redis = await startRedis({ socket, directory })
const relay = await startRelay({ to: socket, roundTrip: '0.271ms', bandwidth: '1Gb/s' })
const admin = new Redis(socket)
const near = `unix://${socket}`
const places = [
  { place: 'Unix socket, 1 item', url: near, items: 1 },
  { place: 'Unix socket, 100 items', url: near, items: 100 },
  { place: '0.271 ms and 1 Gb/s, 100 items', url: `redis://${relay.address}`, items: 100 },
]

async function counters() {
  const info = parseInfo(await admin.info('everything'))
  const number = (name: string) => Number(info.get(name))
  return {
    cpuSeconds: number('used_cpu_user') + number('used_cpu_sys'),
    commands: number('total_commands_processed'),
  }
}

interface Case {
  url: string
  items: number
  strategy: StrategyName
  name: keyof typeof structures
}

async function measure({ url, items, strategy, name }: Case) {
  await admin.flushall()
  const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }
  const store = createSessionStore({
    url,
    strategy,
    tokens,
    janitor: 'elsewhere',
    deadlineMs: 30_000,
  })
  await store.ready()
  const before = await counters()
  const startedAt = performance.now()
  let calls = 0
  await Promise.all(
    Array.from({ length: CALLERS }, async (_, caller) => {
      for (let call = 0; performance.now() - startedAt < 1_000 * seconds; call++) {
        const update = structures[name](`item-${(caller + call) % items}`, `user-${caller}-${call}`)
        await store.run<unknown>(update)
        calls++
      }
    }),
  )
  const took = (performance.now() - startedAt) / 1_000
  const after = await counters()
  await store.close()
  return {
    callsPerSecond: calls / took,
    commands: (after.commands - before.commands) / calls,
    redisCpuMicros: (1e6 * (after.cpuSeconds - before.cpuSeconds)) / calls,
  }
}

const results = new Map<string, Awaited<ReturnType<typeof measure>>[]>()
for (let round = 0; round < rounds; round++) {
  for (const { place, ...one } of places) {
    for (const name of Object.keys(structures) as (keyof typeof structures)[]) {
      for (const strategy of strategies) {
        const key = `${place} | ${name} | ${strategy}`
        results.set(key, [...(results.get(key) ?? []), await measure({ ...one, strategy, name })])
      }
    }
  }
}

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
console.log('| where | structure | strategy | calls/s | commands /call | Redis CPU µs /call |')
console.log('| --- | --- | --- | ---: | ---: | ---: |')
for (const [key, all] of results) {
  const rate = Math.round(median(all.map(({ callsPerSecond }) => callsPerSecond)))
  const [commands, cpu] = (['commands', 'redisCpuMicros'] as const).map((metric) =>
    median(all.map((one) => one[metric])).toFixed(1),
  )
  console.log(`| ${key} | ${rate.toLocaleString('en')} | ${commands} | ${cpu} |`)
}

admin.disconnect()
await relay.stop()
await redis.stop()
await rm(directory, { recursive: true })
