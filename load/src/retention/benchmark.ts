import { writeFile } from 'node:fs/promises'
import { constants, setPriority } from 'node:os'
import { createSessionStore, type Keys, type SessionStore } from '@onetrip/session-store'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { type Command, Option } from 'commander'
import { Redis } from 'ioredis'
import { numbers } from '../drivers/redis/options.ts'
import { cpuBetween } from '../drivers/redis/threads.ts'
import type { Context, Experiment, Server } from '../redis/experiment.ts'
import { figure } from '../table.ts'
import { BlockingWatch } from './blocking.ts'
import { fillSessions } from './fill.ts'
import { type JanitorWork, keysOf, type Layout, layouts, prepareJanitor } from './janitor.ts'
import { conclusionsOf, type Stage, stageTable } from './report.ts'
import { viewWhile } from './victim.ts'

interface RetentionOptions {
  sessions: number
  kept: number
  batchSizes: number[]
  layout: Layout
  quietSeconds: number
}

/** What trimming a big store does to those who use it. */
export const retentionBenchmark: Experiment<RetentionOptions> = {
  name: 'retention',
  summary: 'trim a million sessions to the limit, and show that nobody is held up',
  about: `
It fills a Redis with sessions and has the store's janitor end those beyond the limit, while a victim
records a view about every millisecond. Redis itself tells what blocked it: SLOWLOG and LATENCY, from
1 ms on, and the longest command. The janitor works in a thread of its own. A command that another
program interrupts takes longer, too: where that is allowed (as root), Redis gets priority over them,
and how long it still waited for a core is shown.

For comparison, the same number of sessions is then taken from the list of recent ones by one command,
and the janitor's sweep removes what that leaves behind.

Examples:
  npm run load -- retention
  npm run load -- retention --batch-sizes 100,1000
  npm run load -- retention --layout partitioned --sessions 200000`,

  configure: (command) => configure(command),
  quick: { sessions: 20_000, kept: 1_000, quietSeconds: 0.3 },

  async run(context, options) {
    const { layout } = options
    const server = await context.startRedis({ build: 'patched', tcp: false })
    const prioritised = await preferToOthers(server)
    const keys = keysOf(layout)
    const store = createSessionStore({
      url: server.url,
      keys,
      tokens: { secrets: [newSecret()] },
      deadlineMs: 60_000,
      janitor: false,
    })
    context.defer(() => store.close())
    await store.ready()
    const { token } = await store.login('victim')
    const redis = new Redis(server.socket)
    context.defer(() => redis.disconnect())
    const watch = new BlockingWatch(server.url)
    context.defer(() => watch.close())
    const bench = { context, options, server, store, token, keys, redis, watch }

    const stages: Stage[] = []
    await fill(bench, options.kept)
    stages.push(await stage(bench, 'no clean-up', () => idle(bench)))
    for (const batchSize of options.batchSizes) {
      await fill(bench, options.sessions)
      stages.push(await trim(bench, batchSize))
    }
    await fill(bench, options.sessions)
    stages.push(await stage(bench, 'one command', () => trimAtOnce(bench)))
    stages.push(await sweep(bench))
    await checkVictim(bench, stages)
    const { sessions, kept } = options
    const title = `${figure(sessions)} sessions beyond the ${figure(kept)} that are kept, key layout "${layout}"`
    return {
      tables: [stageTable(stages, title)],
      conclusions: conclusionsOf(stages, prioritised),
      documents: [],
      data: { prioritised, stages },
    }
  },
}

function configure(command: Command): void {
  command
    .option(
      '--sessions <n>',
      'beyond the limit, each with a list of views',
      wholeNumber(100, 20_000_000),
      1_000_000,
    )
    .option('--kept <n>', 'the limit', wholeNumber(100, 20_000_000), 100_000)
    .addOption(
      new Option('--batch-sizes <list>', 'sessions that one step ends')
        .argParser(numbers(1, 1_000))
        .default([100], '100'),
    )
    .addOption(new Option('--layout <name>', 'of the keys').choices(layouts).default('documents'))
    .option(
      '--quiet-seconds <n>',
      'how long the victim is measured without clean-up',
      wholeNumber(1, 60),
      3,
    )
}

/** Has Redis run before other programs. False where that is not allowed. */
async function preferToOthers({ pid }: Server): Promise<boolean> {
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

interface Bench {
  context: Context
  options: RetentionOptions
  server: Server
  store: SessionStore
  token: string
  keys: Keys
  redis: Redis
  watch: BlockingWatch
}

// A user is on some devices, and has looked at a few items.
const SESSIONS_PER_USER = 4
const VIEWS_PER_SESSION = 5
const SEEN_WITHIN_SECONDS = 10 * 24 * 3600

async function fill({ context, server, keys }: Bench, sessions: number): Promise<void> {
  const { signal, progress } = context
  progress.begin(`Filling  ${figure(sessions)} sessions`)
  const start = performance.now()
  await fillSessions(server.url, keys, {
    sessions,
    sessionsPerUser: SESSIONS_PER_USER,
    viewsPerSession: VIEWS_PER_SESSION,
    withinSeconds: SEEN_WITHIN_SECONDS,
    signal,
    onProgress: (filled) => progress.update(`${figure(filled)} of ${figure(sessions)}`),
  })
  const seconds = (performance.now() - start) / 1_000
  progress.end(`${figure(sessions / seconds)} sessions/s`)
}

/** Does some work while the victim views, and asks Redis what blocked it. */
async function stage(
  { context, server, store, token, watch }: Bench,
  name: string,
  work: () => Promise<{ removed: number; steps: number }>,
): Promise<Stage> {
  const { progress, signal } = context
  progress.begin(name)
  await watch.begin()
  const before = await server.cpu()
  const { result, victim } = await viewWhile(store, token, work)
  const after = await server.cpu()
  const { seconds, mainCpuSeconds } = cpuBetween(before, after)
  const waitedSeconds = after.main.waitedSeconds - before.main.waitedSeconds
  const blocking = await watch.end()
  signal.throwIfAborted()
  progress.end(`${figure(seconds)} s  victim's p99 ${figure(victim.p99)} ms`)
  return { name, ...result, seconds, mainCpuSeconds, waitedSeconds, blocking, victim }
}

async function idle({ context, options }: Bench) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, options.quietSeconds * 1_000)
  context.signal.addEventListener('abort', () => resolve())
  await promise
  clearTimeout(timer)
  return { removed: 0, steps: 0 }
}

const NEVER = Number.POSITIVE_INFINITY

async function trim(bench: Bench, batchSize: number): Promise<Stage> {
  const { kept, sessions } = bench.options
  const trimmed = await janitorStage(bench, `janitor, batches of ${batchSize}`, {
    limits: { maxSessions: kept, batchSize, rescaleEverySeconds: NEVER, sweepEverySeconds: NEVER },
    untilSwept: false,
  })
  // The victim's own session counts as well.
  if (trimmed.removed < sessions || trimmed.removed > sessions + 1) {
    throw new Problem(
      `The janitor ended ${trimmed.removed} sessions; ${sessions} were beyond the limit.`,
    )
  }
  return trimmed
}

async function sweep(bench: Bench): Promise<Stage> {
  return await janitorStage(bench, 'sweep of what that left', {
    limits: { maxSessions: NEVER, rescaleEverySeconds: NEVER, sweepEverySeconds: 0 },
    untilSwept: true,
  })
}

async function janitorStage(
  bench: Bench,
  name: string,
  work: Pick<JanitorWork, 'limits' | 'untilSwept'>,
): Promise<Stage> {
  const { context, options, server } = bench
  const { signal, progress } = context
  const janitor = await prepareJanitor({ ...work, url: server.url, layout: options.layout }, signal)
  try {
    return await stage(bench, name, async () => {
      const { evicted, swept, steps } = await janitor.run((soFar) =>
        progress.update(`${figure(soFar.evicted + soFar.swept)} of ${figure(options.sessions)}`),
      )
      return { removed: evicted + swept, steps }
    })
  } finally {
    await janitor.close()
  }
}

/** What the textbook's ZREMRANGEBYRANK does with everything at once; the other records stay. */
async function trimAtOnce({ options, keys, redis }: Bench) {
  const parts = keys.parts()
  const share = Math.ceil(options.sessions / parts.length)
  let removed = 0
  for (const { recent } of parts) removed += await redis.zremrangebyrank(recent, 0, share - 1)
  return { removed, steps: parts.length }
}

/** Whoever views all the time is never evicted, and each of the views counts. */
async function checkVictim({ store, token }: Bench, stages: readonly Stage[]): Promise<void> {
  await store.checkToken(token)
  const [item] = await store.popularItems(1)
  const views = stages.reduce((sum, { victim }) => sum + victim.views, 0)
  if (item?.views !== views) {
    throw new Problem(`The victim viewed ${views} times, but Redis counted ${item?.views} views.`)
  }
}
