import { writeFile } from 'node:fs/promises'
import { constants, setPriority } from 'node:os'
import { createHistogram } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { parseInfo, SessionStore } from '@onetrip/session-store'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { Redis } from 'ioredis'
import { cpuDuring, microsPer } from '../../drivers/redis/cost.ts'
import { numbersOption } from '../../drivers/redis/options.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { range } from '../../reporting/columns.ts'
import { figure } from '../../rounds/figures.ts'
import { asCost } from '../../rounds/shape.ts'
import type { Experiment } from '../experiment.ts'
import { type CleanUp, cleanUpNames, cleanUpOf, type RetentionOptions } from './clean-ups.ts'
import { fillSessions } from './fill.ts'

interface Bench {
  server: RedisServer
  store: SessionStore
  redis: Redis
}

/** The threshold of the slow log. */
const REMEMBERED_MICROS = 200

/** The effect of trimming many sessions on other clients. */
export const retention: Experiment<RetentionOptions, Bench> = {
  name: 'retention',
  title: 'Retention: sessions trimmed while others use the store',
  summary: 'latency of views while the janitor ends a million sessions',
  about: `
Fills a Redis with sessions. Then the store's janitor ends the sessions beyond the limit, while another client
records a view about every millisecond. SLOWLOG shows the commands that block Redis for 1 ms or more. If the
command runs as root, Redis gets priority over other programs, because interrupted commands take longer.

For comparison, one ZREMRANGEBYRANK removes the same number of sessions from the set of recent sessions, and the
janitor's sweep the records that this leaves behind. Each run fills Redis again.

Examples:
  npm run load -- retention --sessions 200000 --batch-sizes 100,1000`,
  rounds: 1,
  duration: null,
  quick: { sessions: 20_000, kept: 1_000 },
  configure(command) {
    const count = wholeNumber(100, 20_000_000)
    const sizes = 'sessions per step of the janitor'
    command
      .option('--sessions <n>', 'sessions beyond the limit', count, 1_000_000)
      .option('--kept <n>', 'the limit of sessions', count, 100_000)
      .addOption(numbersOption('--batch-sizes <list>', sizes, [1, 1_000], [100]))
  },

  factors: [{ name: 'cleanUp', label: 'clean-up' }],
  subject: 'cleanUp',
  metrics: [
    { name: 'megabytes', label: 'MB /100,000 sessions' },
    { name: 'removed', label: 'sessions removed' },
    { name: 'seconds', label: 'seconds' },
    { name: 'mainCpuMicros', label: 'Redis CPU µs /session', ...asCost },
    { name: 'slow', label: 'commands of 1 ms or more', format: 'whole' },
    { name: 'longestMs', label: 'longest command ms' },
    { name: 'p50', label: 'view p50 ms' },
    { name: 'p99', label: 'view p99 ms' },
    { name: 'max', label: 'longest view ms' },
  ],
  progress: ['seconds', 'p99'],

  async prepare(context) {
    const server = await context.startRedis({ build: 'patched' })
    const tokens = { secrets: [newSecret()] }
    const { url } = server
    const store = new SessionStore({ redis: url, tokens, deadlineMs: 60_000, janitor: 'elsewhere' })
    context.defer(() => store.close())
    await store.ready()
    const redis = new Redis(server.socket)
    context.defer(() => redis.disconnect())
    await redis.config('SET', 'slowlog-log-slower-than', REMEMBERED_MICROS)
    await redis.config('SET', 'slowlog-max-len', 100_000)
    await prioritise(server)
    return { server, store, redis }
  },

  cases: (_, options) => cleanUpNames(options).map((cleanUp) => ({ cleanUp })),

  async measure({ cleanUp }, { redis, store, server }, run) {
    const { options } = run
    await redis.flushall('SYNC')
    const { token } = await store.login('observer')
    const sessions = options.kept + options.sessions
    const empty = await memoryOf(redis)
    await fillSessions(redis, sessions, run.context.signal)
    const megabytes = (((await memoryOf(redis)) - empty) / 1e6 / sessions) * 1e5
    const remove = await cleanUpOf(String(cleanUp), server.url, redis, run)
    await redis.slowlog('RESET')
    const { result, cpu } = await cpuDuring(server, () => viewWhile(store, token, remove))
    const { removed, views } = result
    const slow = await slowCommands(redis)
    await checkViews(store, token, views.count)
    return {
      values: {
        megabytes,
        ...(removed > 0 && { removed, ...microsPer(cpu, removed) }),
        seconds: cpu.seconds,
        slow: slow.filter((milliseconds) => milliseconds >= 1).length,
        longestMs: slow[0] ?? null, // null if the slow log is empty
        p50: views.percentile(50) / 1e6,
        p99: views.percentile(99) / 1e6,
        max: views.max / 1e6,
      },
    }
  },

  sections: (_, { options: { sessions, kept } }) => [
    {
      title: 'Effect of the clean-up on other clients',
      caption: `${figure(Number(sessions))} sessions beyond the limit of ${figure(Number(kept))}; a view about every millisecond`,
      columns: [
        'megabytes',
        'removed',
        range('seconds'),
        range('mainCpuMicros'),
        'slow',
        'longestMs',
        'p50',
        'p99',
        'max',
      ],
    },
  ],
}

async function memoryOf(redis: Redis): Promise<number> {
  return Number(parseInfo(await redis.info('memory')).get('used_memory'))
}

/** Gives Redis the highest priority, if this process may do so. */
async function prioritise({ pid }: RedisServer): Promise<void> {
  const highest = constants.priority.PRIORITY_HIGHEST
  try {
    setPriority(pid, highest)
    // With autogroups (sched(7)), a nice value applies within a session only, and each session has its own.
    await writeFile(`/proc/${pid}/autogroup`, String(highest))
  } catch {
    // This process is not root, or the kernel has no autogroups.
  }
}

/** Execution times of the commands in the slow log in milliseconds, the longest first. */
async function slowCommands(redis: Redis): Promise<number[]> {
  type Entry = readonly [id: number, time: number, micros: number, args: readonly string[]]
  const entries = (await redis.slowlog('GET', -1)) as Entry[]
  const others = entries.filter(([, , , [name = '']]) => name.toUpperCase() !== 'SLOWLOG')
  return others.map(([, , micros]) => micros / 1_000).toSorted((a, b) => b - a)
}

/** Records about a thousand views per second, one call at a time, until the clean-up is complete. */
async function viewWhile(store: SessionStore, token: string, cleanUp: CleanUp) {
  const views = createHistogram({ figures: 3 })
  let working = true
  const removing = cleanUp().finally(() => {
    working = false
  })
  removing.catch(() => {}) // in case a view fails first
  for (; working; await delay(1)) {
    const start = process.hrtime.bigint()
    await store.recordView(token, 'item-0')
    views.record(process.hrtime.bigint() - start)
  }
  return { removed: await removing, views }
}

/** Checks that the session in use still exists, and that Redis counted all of its views. */
async function checkViews(store: SessionStore, token: string, views: number): Promise<void> {
  await store.checkToken(token)
  const [item] = await store.popularItems(1)
  if (item?.views === views) return
  throw new Problem(`${views} views were recorded, but Redis counted ${item?.views}.`)
}
