/** Measures how callers of `batch` affect each other. Run: node packages/session-store/bench/batching-costs.ts */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startRedis } from '@onetrip/stack/redis.ts'
import { createSessionStore, type Operation, type SessionStore } from '../src/core/index.ts'

const MEASURE_MS = 1_000
const ROUNDS = 5
const SESSIONS = 1_000

const directory = await mkdtemp(join(tmpdir(), 'onetrip-bench-'))
const socket = join(directory, 'redis.sock')
const redis = await startRedis({ socket, directory })
const newStore = () =>
  createSessionStore({
    url: `unix://${socket}`,
    tokens: { secrets: ['a-secret-for-tests-a-secret-for-tests'] },
    janitor: 'elsewhere',
    maxSessionsPerUser: Number.POSITIVE_INFINITY,
  })
const store = newStore()
const other = newStore()
await Promise.all([store.ready(), other.ready()])
const tokens: string[] = []
for (let index = 0; index < SESSIONS; index++) {
  const { token } = await store.login(`user-${index % 10}`)
  tokens.push(token)
}
const [first = ''] = tokens

const get = (key: string): Operation<unknown> => ({
  commands: [['GET', key]],
  readOnly: true,
  read: ([value]) => value,
})
const view = (index: number) =>
  store.recordView(tokens[index % SESSIONS] ?? '', `item-${index % 50}`)

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
}
const median = (values: readonly number[]) =>
  percentile(
    values.toSorted((a, b) => a - b),
    0.5,
  )
const ms = (value: number) => value.toFixed(2)

/** Latencies of the views of eight callers, one view every 2 ms each, while `disturb` runs every 5 ms. */
async function latenciesDuring(disturb: (() => Promise<unknown>) | undefined): Promise<number[]> {
  const latencies: number[] = []
  const until = performance.now() + MEASURE_MS
  const isOver = () => performance.now() >= until
  const disturber = (async () => {
    while (disturb && !isOver()) {
      await disturb()
      await delay(5)
    }
  })()
  const callers = Array.from({ length: 8 }, async (_, caller) => {
    for (let index = caller; !isOver(); index += 8) {
      const startedAt = performance.now()
      await view(index)
      latencies.push(performance.now() - startedAt)
      await delay(2)
    }
  })
  await Promise.all([...callers, disturber])
  return latencies.toSorted((a, b) => a - b)
}

/** Latency of a view that starts right after `burst` others. */
async function latencyAfter(burst: number): Promise<number> {
  const others = Array.from({ length: burst }, (_, index) => view(index))
  const startedAt = performance.now()
  await view(burst)
  const latency = performance.now() - startedAt
  await Promise.all(others)
  return latency
}

const large = { '64 kB': 65_536, '1 MB': 1_048_576, '8 MB': 8_388_608 }
for (const [name, bytes] of Object.entries(large)) {
  await store.run({
    commands: [['SET', name, 'x'.repeat(bytes)]],
    readOnly: false,
    read: () => undefined,
  })
}
const patch = Object.fromEntries(
  Array.from({ length: 4 }, (_, index) => [`field-${index}`, 'x'.repeat(16_000)]),
)
const disturbances: [what: string, run: (() => Promise<unknown>) | undefined][] = [
  ['nothing', undefined],
  ['`userSessions` (100)', () => store.userSessions(first)],
  ['`recentSessions(1000)`', () => store.recentSessions(1_000)],
  ['`patch` of 64 kB', () => store.patch(first, patch)],
  ...Object.keys(large).flatMap((name): [string, () => Promise<unknown>][] => [
    [`a reply of ${name}`, () => store.run(get(name))],
    [`a reply of ${name}, from a second store`, () => other.run(get(name))],
  ]),
]

async function table(head: string[], rows: [name: string, measure: () => Promise<number[]>][]) {
  const results = new Map<string, number[][]>()
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, measure] of rows) {
      const values = await measure()
      if (round > 0) results.set(name, [...(results.get(name) ?? []), values]) // round 0 is the warm-up
    }
  }
  console.log(`\n| ${head.join(' | ')} |\n|${' --- |'.repeat(head.length)}`)
  for (const [name, rounds] of results) {
    const columns = (rounds[0] ?? []).map((_, column) =>
      ms(median(rounds.map((values) => values[column] ?? Number.NaN))),
    )
    console.log(`| ${[name, ...columns].join(' | ')} |`)
  }
}

await table(
  ['concurrent call', 'p50 of the views, ms', 'p99, ms', 'max, ms'],
  disturbances.map(([what, disturb]) => [
    what,
    async () => {
      const latencies = await latenciesDuring(disturb)
      return [percentile(latencies, 0.5), percentile(latencies, 0.99), percentile(latencies, 1)]
    },
  ]),
)
await table(
  ['views before', 'latency of the next view, ms'],
  [0, 15, 100, 500, 999].map((burst) => [
    String(burst),
    async () => [median(await repeat(20, () => latencyAfter(burst)))],
  ]),
)

async function repeat(times: number, measure: () => Promise<number>): Promise<number[]> {
  const values: number[] = []
  for (let index = 0; index < times; index++) values.push(await measure())
  return values
}

await Promise.all([store, other].map((one: SessionStore) => one.close()))
await redis.stop()
await rm(directory, { recursive: true })
