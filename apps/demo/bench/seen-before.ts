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
  type StrategyName,
  strategyNames,
} from '@onetrip/session-store'
import { unixUrl } from '@onetrip/stack/address.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { startRedis } from '@onetrip/stack/redis.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import { median } from 'simple-statistics'
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

const directory = await mkdtemp(join(tmpdir(), 'onetrip-bench-'))
const socket = join(directory, 'redis.sock')
const redis = await startRedis({ socket, directory })
const url = unixUrl(socket)
const monitor = await RedisMonitor.connect(url)

interface Case {
  items: number
  strategy: StrategyName
  name: keyof typeof structures
}

let measurements = 0

async function measure({ items, strategy, name }: Case) {
  const prefix = `item-${++measurements}` // each measurement has new keys
  const store = createSessionStore({
    url,
    strategy,
    tokens: { secrets: [newSecret()] },
    janitor: 'elsewhere',
    deadlineMs: 30_000,
  })
  await store.ready()
  const before = await monitor.read()
  const startedAt = performance.now()
  let calls = 0
  await Promise.all(
    Array.from({ length: CALLERS }, async (_, caller) => {
      for (let call = 0; performance.now() - startedAt < 1_000 * seconds; call++) {
        const item = `${prefix}-${(caller + call) % items}`
        await store.run<unknown>(structures[name](item, `user-${caller}-${call}`))
        calls++
      }
    }),
  )
  const took = (performance.now() - startedAt) / 1_000
  const after = await monitor.read()
  await store.close()
  return {
    callsPerSecond: calls / took,
    commands: (after.commands - before.commands) / calls,
    redisCpuMicros: (1e6 * (after.cpuSeconds - before.cpuSeconds)) / calls,
  }
}

const cases = [1, 100].flatMap((items) =>
  (Object.keys(structures) as (keyof typeof structures)[]).flatMap((name) =>
    strategyNames.map((strategy): Case => ({ items, name, strategy })),
  ),
)
const results = cases.map((): Awaited<ReturnType<typeof measure>>[] => [])
for (let round = 0; round < rounds; round++) {
  for (const [index, one] of cases.entries()) results[index]?.push(await measure(one))
}

console.log('| where | structure | strategy | commands /call | Redis CPU µs /call | calls/s |')
console.log('| --- | --- | --- | ---: | ---: | ---: |')
for (const [index, { items, name, strategy }] of cases.entries()) {
  const of = (metric: 'callsPerSecond' | 'commands' | 'redisCpuMicros') =>
    median((results[index] ?? []).map((one) => one[metric]))
  const rate = Math.round(of('callsPerSecond')).toLocaleString('en')
  const costs = `${of('commands').toFixed(1)} | ${of('redisCpuMicros').toFixed(1)}`
  console.log(
    `| ${items} item${items === 1 ? '' : 's'} | ${name} | ${strategy} | ${costs} | ${rate} |`,
  )
}

monitor.close()
await redis.stop()
await rm(directory, { recursive: true })
