import { writeFile } from 'node:fs/promises'
import { constants, setPriority } from 'node:os'
import { createHistogram } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { createSessionStore, type SessionStore } from '@onetrip/session-store'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { Redis } from 'ioredis'
import { cpuDuring, microsPer } from '../../drivers/redis/cost.ts'
import { numbersOption } from '../../drivers/redis/options.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'
import type { Row } from '../../experiment/rows.ts'
import { asCpu } from '../../experiment/shape.ts'
import { chartsOf } from '../../reporting/charts.ts'
import { range, sectionOf } from '../../reporting/columns.ts'
import { type CleanUp, cleanUpNames, cleanUpOf, type RetentionOptions } from './clean-ups.ts'
import { fillSessions } from './fill.ts'

interface Bench {
  server: RedisServer
  store: SessionStore
  redis: Redis
}

/** Shorter commands are not in the slow log. */
const REMEMBERED_MICROS = 200

/** What trimming a big store does to those who use it. */
export const retention: Experiment<RetentionOptions, Bench> = {
  name: 'retention',
  title: 'Retention: sessions trimmed while others use the store',
  summary: 'trim a million sessions to the limit, and show that nobody is held up',
  group: 'The store',
  about: `
Fills a Redis with sessions and has the store's janitor end those beyond the limit, while a victim records a
view about every millisecond. SLOWLOG says what blocked Redis for 1 ms or more. As root, Redis gets priority
over other programs, since a command that one of them interrupts takes longer, too.

For comparison, ZREMRANGEBYRANK takes the same number of sessions from the list of recent ones, by one command
and in pieces as large as the janitor's batches, and the janitor's sweep removes what that leaves behind. Each
run fills Redis anew.

Examples:
  npm run load -- retention --sessions 200000 --batch-sizes 100,1000`,
  rounds: 1,
  duration: null,
  quick: { sessions: 20_000, kept: 1_000 },
  seconds: { quick: null, usual: null, full: null },
  configure(command) {
    const count = wholeNumber(100, 20_000_000)
    const sizes = 'sessions that one step of the janitor ends'
    command
      .option('--sessions <n>', 'beyond the limit, each with a list of views', count, 1_000_000)
      .option('--kept <n>', 'the limit', count, 100_000)
      .addOption(numbersOption('--batch-sizes <list>', sizes, [1, 1_000], [100]))
  },

  factors: [{ name: 'cleanUp', label: 'clean-up' }],
  subject: 'cleanUp',
  metrics: [
    { name: 'removed', label: 'sessions removed' },
    { name: 'seconds', label: 'seconds' },
    { name: 'mainCpuMicros', label: 'Redis CPU µs /session', ...asCpu },
    { name: 'slow', label: 'commands of 1 ms or more', format: 'whole' },
    { name: 'longestMs', label: 'longest command ms' },
    { name: 'p50', label: 'view p50 ms' },
    { name: 'p99', label: 'view p99 ms' },
    { name: 'max', label: 'longest view ms' },
  ],
  progress: ['seconds', 'p99'],
  loadOptions: ['sessions', 'kept'],

  async prepare(context) {
    const server = await context.startRedis({ build: 'patched' })
    const tokens = { secrets: [newSecret()] }
    const { url } = server
    const store = createSessionStore({ url, tokens, deadlineMs: 60_000, janitor: false })
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
    const { token } = await store.login('victim')
    const sessions = options.kept + options.sessions
    await fillSessions(redis, sessions, run.context.signal)
    const remove = await cleanUpOf(String(cleanUp), server.url, redis, run)
    await redis.slowlog('RESET')
    const { result, cpu } = await cpuDuring(server, () => viewWhile(store, token, remove))
    const { removed, views } = result
    const slow = await slowCommands(redis)
    await checkVictim(store, token, views.count)
    return {
      values: {
        ...(removed > 0 && { removed, ...microsPer(cpu, removed) }),
        seconds: cpu.seconds,
        slow: slow.filter((milliseconds) => milliseconds >= 1).length,
        longestMs: slow[0] ?? null, // none was remembered
        p50: views.percentile(50) / 1e6,
        p99: views.percentile(99) / 1e6,
        max: views.max / 1e6,
      },
    }
  },

  sections: (rows, { options: { sessions, kept } }) => [
    sectionOf(rows, {
      title: 'What clean-up does to the others',
      charts: [...chartsOf(rows, 'p99'), ...chartsOf(rows, 'longestMs')],
      caption: `${figure(Number(sessions))} sessions beyond the ${figure(Number(kept))} that are kept; a view about every millisecond`,
      columns: [
        ...['removed', range('seconds', rows), 'mainCpuMicros', 'slow', 'longestMs'],
        ...['p50', 'p99', 'max'],
      ],
    }),
  ],
  claims: (rows) => [
    ...rows.filter(({ subject }) => subject.startsWith('janitor')).all.map(janitorClaim),
    ...rows.filter(({ subject }) => subject.includes('ZREMRANGEBYRANK')).all.map(trimClaim),
  ],
}

/** The longest command of a row; the slow log has none that was shorter than this. */
const longestOf = (row: Row) =>
  figure(Math.max(REMEMBERED_MICROS / 1_000, ...row.values('longestMs')))

const medianOf = (row: Row, metric: string) => figure(row.median(metric) ?? Number.NaN)

const janitorClaim = (row: Row) =>
  `The ${row.subject} ended ${medianOf(row, 'removed')} sessions in ${medianOf(row, 'seconds')} s; no command blocked Redis for longer than ${longestOf(row)} ms, and 99 % of the views took at most ${medianOf(row, 'p99')} ms.`

const trimClaim = (row: Row) =>
  `${row.subject[0]?.toUpperCase()}${row.subject.slice(1)} trimmed the list of recent sessions in ${medianOf(row, 'seconds')} s; it blocked Redis for at most ${longestOf(row)} ms at a time, and the longest view took ${medianOf(row, 'max')} ms.`

/** Has Redis run before other programs where that is allowed. */
async function prioritise({ pid }: RedisServer): Promise<void> {
  const highest = constants.priority.PRIORITY_HIGHEST
  try {
    setPriority(pid, highest)
    // With autogroups (sched(7)) a priority counts within one session only, and each has one of its own.
    await writeFile(`/proc/${pid}/autogroup`, String(highest))
  } catch {
    // We are not root, or there are no autogroups.
  }
}

/** How long commands took that took 0.2 ms or longer, in milliseconds, the longest first. */
async function slowCommands(redis: Redis): Promise<number[]> {
  type Entry = readonly [id: number, time: number, micros: number, args: readonly string[]]
  const entries = (await redis.slowlog('GET', -1)) as Entry[]
  const others = entries.filter(([, , , [name = '']]) => name.toUpperCase() !== 'SLOWLOG')
  return others.map(([, , micros]) => micros / 1_000).toSorted((a, b) => b - a)
}

/** Views an item about a thousand times a second, one call at a time, until the clean-up is done. */
async function viewWhile(store: SessionStore, token: string, cleanUp: CleanUp) {
  const views = createHistogram({ figures: 3 })
  let working = true
  const removing = cleanUp().finally(() => {
    working = false
  })
  removing.catch(() => {}) // should a view fail first
  for (; working; await delay(1)) {
    const start = process.hrtime.bigint()
    await store.recordView(token, 'item-0')
    views.record(process.hrtime.bigint() - start)
  }
  return { removed: await removing, views }
}

/** A session that is used all the time is never ended, and each of its views counts. */
async function checkVictim(store: SessionStore, token: string, views: number): Promise<void> {
  await store.checkToken(token)
  const [item] = await store.popularItems(1)
  if (item?.views === views) return
  throw new Problem(`The victim viewed ${views} times, but Redis counted ${item?.views} views.`)
}
