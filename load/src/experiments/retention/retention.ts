import { writeFile } from 'node:fs/promises'
import { constants, setPriority } from 'node:os'
import { createHistogram } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { createSessionStore, type SessionStore } from '@onetrip/session-store'
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
import { asCpu } from '../../experiment/shape.ts'
import { bars } from '../../reporting/charts.ts'
import { type Column, range, tableOf } from '../../reporting/columns.ts'
import { type CleanUp, cleanUpNames, cleanUpOf, type RetentionOptions } from './clean-ups.ts'
import { fillSessions, layouts } from './fill.ts'

interface Bench {
  server: RedisServer
  store: SessionStore
  redis: Redis
  watch: BlockingWatch
  /** Whether Redis runs before other programs. */
  hasPriority: boolean
}

/** What trimming a big store does to those who use it. */
export const retention: Experiment<RetentionOptions, Bench> = {
  name: 'retention',
  title: 'Retention: sessions trimmed while others use the store',
  summary: 'trim a million sessions to the limit, and show that nobody is held up',
  group: 'The store',
  about: `
Fills a Redis with sessions and has the store's janitor end those beyond the limit, while a victim records a
view about every millisecond. SLOWLOG and LATENCY say what blocked Redis for 1 ms or more. Where that is
allowed (as root), Redis gets priority over other programs, since a command that one of them interrupts
takes longer, too.

For comparison, one command takes the same number of sessions from the list of recent ones, and the
janitor's sweep removes what that leaves behind. Each run fills Redis anew.

Examples:
  npm run load -- retention
  npm run load -- retention --batch-sizes 100,1000
  npm run load -- retention --layout partitioned --sessions 200000`,
  rounds: 1,
  duration: null,
  quick: { sessions: 20_000, kept: 1_000 },
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
      .addOption(
        new Option('--layout <name>', 'of the keys')
          .choices(Object.keys(layouts))
          .default('documents'),
      )
  },

  factors: [{ name: 'cleanUp', label: 'clean-up' }],
  subject: 'cleanUp',
  metrics: [
    { name: 'removed', label: 'sessions removed' },
    { name: 'seconds', label: 'seconds' },
    { name: 'cpuMicros', label: 'Redis CPU µs /session', ...asCpu },
    { name: 'waitedMs', label: 'Redis waited for CPU ms' },
    { name: 'slow', label: 'commands of 1 ms or more', format: 'whole' },
    { name: 'longestMs', label: 'longest command ms' },
    { name: 'latencyMs', label: 'longest LATENCY event ms' },
    { name: 'p50', label: 'view p50 ms' },
    { name: 'p99', label: 'view p99 ms' },
    { name: 'max', label: 'longest view ms' },
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
    const server = await context.startRedis({ build: 'patched' })
    const store = createSessionStore({
      ...{ url: server.url, keys: layouts[layout], tokens: { secrets: [newSecret()] } },
      deadlineMs: 60_000,
      janitor: false,
    })
    context.defer(() => store.close())
    await store.ready()
    const redis = new Redis(server.socket)
    context.defer(() => redis.disconnect())
    const watch = new BlockingWatch(server.url)
    context.defer(() => watch.close())
    return { server, store, redis, watch, hasPriority: await prioritise(server) }
  },

  cases: (_, options) => cleanUpNames(options).map((cleanUp) => ({ cleanUp })),

  async measure({ cleanUp }, bench, run) {
    const { hasPriority, redis, store, server, watch } = bench
    const { options, update } = run
    const { signal } = run.context
    await redis.flushall('SYNC')
    const { token } = await store.login('victim')
    const sessions = options.kept + options.sessions
    const onProgress = (filled: number) =>
      update(`filling: ${figure(filled)} of ${figure(sessions)} sessions`)
    await fillSessions(redis, layouts[options.layout], sessions, { signal, onProgress })
    await using undo = new AsyncDisposableStack()
    const remove = await cleanUpOf(String(cleanUp), bench, run, undo)
    await watch.begin()
    const before = await server.cpu()
    const { removed, views } = await viewWhile(store, token, remove)
    const after = await server.cpu()
    const { slow, longest, events } = await watch.end()
    await checkVictim(store, token, views.count)
    const { seconds, mainCpuSeconds, mainWaitedSeconds } = cpuBetween(before, after)
    return {
      values: {
        removed: removed || null,
        seconds,
        cpuMicros: removed ? (mainCpuSeconds * 1e6) / removed : null,
        waitedMs: mainWaitedSeconds * 1_000,
        slow,
        longestMs: longest?.milliseconds ?? null,
        latencyMs: Math.max(0, ...Object.values(events)) || null,
        p50: views.percentile(50) / 1e6,
        p99: views.percentile(99) / 1e6,
        max: views.max / 1e6,
      },
      doubts: hasPriority ? [] : ['noPriority'],
      details: { longest: longest?.command.toUpperCase() ?? null, events },
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
            ...['cpuMicros', 'waitedMs', 'slow'],
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

/** With its name; commands that are too short are not remembered. */
const longestCommand: Column = {
  head: 'longest command ms',
  cell(row) {
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
  // With autogroups (sched(7)) a priority counts within one session only; groups have priorities of their own.
  await writeFile(`/proc/${pid}/autogroup`, String(highest)).catch(() => {})
  return true
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
