import { writeFile } from 'node:fs/promises'
import { constants, setPriority } from 'node:os'
import { createHistogram } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { createSessionStore, type Keys, type SessionStore } from '@onetrip/session-store'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { Option } from 'commander'
import { Redis } from 'ioredis'
import { BlockingWatch, REMEMBERED_MICROS } from '../../drivers/redis/blocking.ts'
import { numbersOption } from '../../drivers/redis/options.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { cpuBetween } from '../../drivers/redis/threads.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'
import type { Row } from '../../experiment/rows.ts'
import { bars } from '../../reporting/charts.ts'
import { type Column, range, tableOf } from '../../reporting/columns.ts'
import { fillSessions } from './fill.ts'
import { type JanitorWork, keysOf, type Layout, layouts, prepareJanitor } from './janitor.ts'

interface RetentionOptions {
  sessions: number
  kept: number
  batchSizes: number[]
  layout: Layout
  quietSeconds: number
}

interface Bench {
  server: RedisServer
  store: SessionStore
  redis: Redis
  keys: Keys
  watch: BlockingWatch
  /** Whether Redis runs before other programs. */
  hasPriority: boolean
}

/** What one run works with. */
interface Work extends Bench {
  options: RetentionOptions
  signal: AbortSignal
  update(text: string): void
}

/** Removes sessions; returns how many. */
type CleanUp = () => Promise<number>

const NONE = 'none'
const AT_ONCE = 'one ZREMRANGEBYRANK'
const SWEEP = 'sweep afterwards'
const janitorOf = (batchSize: number) => `janitor (batches of ${batchSize})`

/** What trimming a big store does to those who use it. */
export const retention: Experiment<RetentionOptions, Bench> = {
  name: 'retention',
  title: 'Retention: sessions trimmed while others use the store',
  summary: 'trim a million sessions to the limit, and show that nobody is held up',
  group: 'The store',
  about: `
It fills a Redis with sessions and has the store's janitor end those beyond the limit, while a victim
records a view about every millisecond. Redis itself says what blocked it: SLOWLOG and LATENCY, from
1 ms on, and the longest command. The janitor works in a thread of its own. A command that another
program interrupts takes longer, too: where that is allowed (as root), Redis gets priority over other
programs, and how long it still waited for a core is shown.

For comparison, one command takes the same number of sessions from the list of recent ones, and the
janitor's sweep removes what that leaves behind. Each run fills Redis anew.

Examples:
  npm run load -- retention
  npm run load -- retention --batch-sizes 100,1000
  npm run load -- retention --layout partitioned --sessions 200000`,
  rounds: 1,
  duration: null,
  quick: { sessions: 20_000, kept: 1_000, quietSeconds: 1 },
  seconds: { quick: null, usual: null, full: null },
  configure(command) {
    const count = wholeNumber(100, 20_000_000)
    command
      .option('--sessions <n>', 'beyond the limit, each with a list of views', count, 1_000_000)
      .option('--kept <n>', 'the limit', count, 100_000)
      .addOption(
        numbersOption('--batch-sizes <list>', 'sessions that one step of the janitor ends', {
          ...{ min: 1, max: 1_000, defaults: [100] },
        }),
      )
      .addOption(new Option('--layout <name>', 'of the keys').choices(layouts).default('documents'))
      .option(
        '--quiet-seconds <n>',
        'how long the victim is measured without clean-up',
        wholeNumber(1, 60),
        3,
      )
  },

  factors: [{ name: 'cleanUp', label: 'clean-up' }],
  subject: 'cleanUp',
  metrics: [
    metric('removed', 'sessions removed', 'sessions'),
    metric('seconds', 'seconds', 's'),
    { ...metric('cpuMicros', 'Redis CPU µs /session', 'µs'), kind: 'cpu', better: 'lower' },
    metric('waitedMs', 'Redis waited for CPU ms', 'ms'),
    metric('slow', 'commands of 1 ms or more', 'commands'),
    metric('longestMs', 'longest command ms', 'ms'),
    metric('latencyMs', 'longest LATENCY event ms', 'ms'),
    metric('views', 'views', 'views'),
    metric('p50', 'view p50 ms', 'ms'),
    metric('p99', 'view p99 ms', 'ms'),
    metric('max', 'longest view ms', 'ms'),
  ],
  progress: ['seconds', 'p99'],
  doubts: {
    noPriority: {
      mark: '‡',
      text: 'Redis had no priority over other programs: a command that one of them interrupted counts as long.',
    },
  },
  loadOptions: ['sessions', 'kept', 'layout'],

  async prepare(context, { layout }) {
    const server = await context.startRedis({ build: 'patched', tcp: false })
    const keys = keysOf(layout)
    const store = createSessionStore({
      ...{ url: server.url, keys, tokens: { secrets: [newSecret()] } },
      deadlineMs: 60_000,
      janitor: false,
    })
    context.defer(() => store.close())
    await store.ready()
    const redis = new Redis(server.socket)
    context.defer(() => redis.disconnect())
    const watch = new BlockingWatch(server.url)
    context.defer(() => watch.close())
    const hasPriority = await prioritise(server)
    return { server, store, redis, keys, watch, hasPriority }
  },

  cases: (_, { batchSizes }) =>
    [NONE, ...batchSizes.map(janitorOf), AT_ONCE, SWEEP].map((cleanUp) => ({ cleanUp })),

  async measure({ cleanUp }, bench, { options, context, update }) {
    const work = { ...bench, options, update, signal: context.signal }
    const { hasPriority, redis, store, server, watch } = bench
    await redis.flushall('SYNC')
    const { token } = await store.login('victim')
    const sessions = options.kept + options.sessions
    await fillSessions(server.url, bench.keys, {
      ...{ sessions, signal: context.signal },
      onProgress: (filled) => update(`filling: ${figure(filled)} of ${figure(sessions)} sessions`),
    })
    await using undo = new AsyncDisposableStack()
    const remove = await cleanUpOf(String(cleanUp), work, undo)
    await watch.begin()
    const before = await server.cpu()
    const { removed, views } = await viewWhile(store, token, remove)
    const after = await server.cpu()
    const blocking = await watch.end()
    context.signal.throwIfAborted()
    await checkVictim(bench, token, views.count)
    const { seconds, mainCpuSeconds } = cpuBetween(before, after)
    return {
      values: {
        removed: removed || null,
        seconds,
        cpuMicros: removed ? (mainCpuSeconds * 1e6) / removed : null,
        waitedMs: (after.main.waitedSeconds - before.main.waitedSeconds) * 1_000,
        slow: blocking.slow,
        longestMs: blocking.longest?.milliseconds ?? null,
        latencyMs: Math.max(0, ...Object.values(blocking.events)) || null,
        views: views.count,
        p50: views.percentile(50) / 1e6,
        p99: views.percentile(99) / 1e6,
        max: views.max / 1e6,
      },
      doubts: hasPriority ? [] : ['noPriority'],
      details: { longest: blocking.longest?.command ?? null, events: blocking.events },
    }
  },

  sections: (rows, { options }) => [
    {
      title: 'What clean-up does to the others',
      charts: [
        bars(rows, 'p99', 'The time that 99 % of the views took, by clean-up'),
        bars(rows, 'longestMs', 'The longest command, by clean-up'),
      ],
      tables: [
        tableOf(rows, {
          caption: `${figure(Number(options.sessions))} sessions beyond the ${figure(Number(options.kept))} that are kept, key layout "${options.layout}"; a view about every millisecond`,
          columns: [
            'removed',
            range('seconds', rows),
            ...['cpuMicros', 'waitedMs'],
            { head: 'commands of 1 ms or more', cell: (row) => String(row.median('slow')) },
            longestCommand,
            ...['latencyMs', 'p50', 'p99', 'max'],
          ],
        }),
      ],
    },
  ],
  claims: (rows) =>
    rows
      .filter((row) => row.subject.startsWith('janitor'))
      .all.map((row) => {
        const [removed, seconds, p99] = ['removed', 'seconds', 'p99'].map((name) =>
          figure(row.median(name) ?? Number.NaN),
        )
        const longest = Math.max(REMEMBERED_MICROS / 1_000, ...row.values('longestMs'))
        return `The ${row.subject} ended ${removed} sessions in ${seconds} s; no command blocked Redis for longer than ${figure(longest)} ms, and 99 % of the views took at most ${p99} ms.`
      }),
}

function metric(name: string, label: string, unit: string) {
  return { name, label, unit }
}

/** With its name; commands that are too short are not remembered. */
const longestCommand: Column = {
  head: 'longest command ms',
  cell(row: Row) {
    const value = row.median('longestMs')
    if (value === null) return `below ${REMEMBERED_MICROS / 1_000}`
    const names = row.samples.flatMap(({ details }) => details?.longest ?? [])
    return `${figure(value)} (${[...new Set(names)].join(', ')})`
  },
}

/** Has Redis run before other programs; false where that is not allowed. */
async function prioritise({ pid }: RedisServer): Promise<boolean> {
  const highest = constants.priority.PRIORITY_HIGHEST
  try {
    setPriority(pid, highest)
  } catch {
    return false
  }
  // With autogroups (sched(7)) a priority counts among the programs of one session only; groups have
  // priorities of their own.
  await writeFile(`/proc/${pid}/autogroup`, String(highest)).catch(() => {})
  return true
}

const NEVER = Number.POSITIVE_INFINITY

async function cleanUpOf(name: string, work: Work, undo: AsyncDisposableStack): Promise<CleanUp> {
  const { options, signal } = work
  if (name === AT_ONCE) return () => trimAtOnce(work)
  if (name === NONE) {
    return async () => {
      await delay(options.quietSeconds * 1_000, null, { signal })
      return 0
    }
  }
  if (name === SWEEP) {
    const limits = { maxSessions: NEVER, rescaleEverySeconds: NEVER, sweepEverySeconds: 0 }
    const orphans = await trimAtOnce(work)
    return await janitor({ limits, untilSwept: true }, orphans, work, undo)
  }
  const batchSize = options.batchSizes.find((size) => janitorOf(size) === name) ?? 0
  const never = { rescaleEverySeconds: NEVER, sweepEverySeconds: NEVER }
  const limits = { maxSessions: options.kept, batchSize, ...never }
  // The victim's session counts towards the limit, too.
  return await janitor({ limits, untilSwept: false }, options.sessions + 1, work, undo)
}

/**
 * Prepares a janitor, so that its start is not measured.
 *
 * @param expected sessions that it must remove.
 */
async function janitor(
  wanted: Pick<JanitorWork, 'limits' | 'untilSwept'>,
  expected: number,
  { server, options, signal, update }: Work,
  undo: AsyncDisposableStack,
): Promise<CleanUp> {
  const { layout } = options
  const waiting = await prepareJanitor({ ...wanted, url: server.url, layout }, signal)
  undo.defer(() => waiting.close())
  return async () => {
    const removed = await waiting.run((soFar) =>
      update(`${figure(soFar)} of ${figure(expected)} sessions`),
    )
    if (removed === expected) return removed
    throw new Problem(`The janitor removed ${removed} sessions instead of ${expected}.`)
  }
}

/** What the textbook's ZREMRANGEBYRANK does with everything at once; the other records stay. */
async function trimAtOnce({ options, keys, redis }: Work): Promise<number> {
  const parts = keys.parts()
  const share = Math.ceil(options.sessions / parts.length)
  let removed = 0
  for (const { recent } of parts) removed += await redis.zremrangebyrank(recent, 0, share - 1)
  return removed
}

const PAUSE_MS = 1

/** Views an item about a thousand times a second, one call at a time, until the clean-up is done. */
async function viewWhile(store: SessionStore, token: string, cleanUp: CleanUp) {
  const views = createHistogram({ figures: 3 })
  let working = true
  const done = cleanUp().finally(() => {
    working = false
  })
  const viewing = (async () => {
    while (working) {
      const start = process.hrtime.bigint()
      await store.recordView(token, 'item-0')
      views.record(process.hrtime.bigint() - start)
      await delay(PAUSE_MS)
    }
  })()
  const [removed] = await Promise.all([done, viewing])
  return { removed, views }
}

/** A session that is used all the time is never ended, and each of its views counts. */
async function checkVictim({ store }: Bench, token: string, views: number): Promise<void> {
  await store.checkToken(token)
  const [item] = await store.popularItems(1)
  if (item?.views === views) return
  throw new Problem(`The victim viewed ${views} times, but Redis counted ${item?.views} views.`)
}
