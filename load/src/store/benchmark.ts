import { createSessionStore, type StrategyName, strategyNames } from '@onetrip/session-store'
import { listOf, wholeNumber } from '@onetrip/stack/parsers.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { type Command, Option } from 'commander'
import { storeLoad } from '../compare/parts.ts'
import { addRounds, numbers, type RoundsOptions } from '../drivers/redis/options.ts'
import { type EarlyEnd, earlyEnd } from '../experiment/rounds.ts'
import type { Context, Experiment, Server } from '../redis/experiment.ts'
import { completeRounds } from '../redis/rounds.ts'
import { figure } from '../table.ts'
import { type CallsRun, measureCalls, type Operation, operations } from './calls.ts'
import { updateTokenFigures } from './documents.ts'
import { type LinkPlan, linkNames, links, type OpenLink, openLink } from './links.ts'
import { conclusionsOf, documentsTable, type LinkResult, linkTable } from './report.ts'
import { type Contestant, summarizeCalls } from './summary.ts'

export interface StoreBenchmarkOptions extends RoundsOptions {
  operation: Operation
  strategies: StrategyName[]
  links: LinkPlan[]
  concurrency: number
  items?: number
  poolSizes: number[]
  ioThreads: number[]
}

/** The documents' `benchmark_update_token`, for every strategy and link. */
export const storeBenchmark: Experiment<StoreBenchmarkOptions> = {
  name: 'store',
  summary: "calls per second of the store's updateToken, by strategy and link to Redis",
  about: `
It calls the function again and again for a given time: one call at a time, as the documents do, or
--concurrency of them. Over the links of the documents:
  unix       Unix socket
  loopback   TCP on this machine
  switch     0.271 ms, 1 Gb/s
  vpn        48 ms, 1.8 Mb/s
or any other, as 5ms@100Mb/s. Distant links are simulated by a relay (npm run load -- relay --help),
set so that a PING takes the time of the link; what it took is shown.

A call has 5 commands. With one call at a time there are one session and one item, as in the documents;
with more, each has a session of its own, and items are drawn from 1,000, few of them often. After each
run the counts in Redis are compared with the calls that were made.

With several --pool-sizes or --io-threads it shows what those are worth, if anything.

Examples:
  npm run load -- store
  npm run load -- store --quick --links unix,switch
  npm run load -- store --operation record-view --concurrency 64 --links loopback
  npm run load -- store --strategies batch --links loopback --concurrency 64 --pool-sizes 1,2,4,8 --io-threads 1,2`,

  configure: (command) => configure(command),
  quick: { rounds: 1, duration: 0.1 },
  compared: (options) => ({
    variants: options.strategies,
    rounds: options.rounds,
    load: storeLoad(options),
  }),

  async run(context, options) {
    const { results, samples, early } = await measureLinks(context, options)
    const asDocumented = options.operation === 'update-token' && options.concurrency === 1
    const compared = asDocumented ? documentsTable(results) : undefined
    return {
      tables: [...(compared ? [compared] : []), ...results.map(linkTable)],
      conclusions: conclusionsOf(results, asDocumented),
      documents: asDocumented ? updateTokenFigures : [],
      data: {
        summaries: results.map(({ plan, ...rest }) => ({ link: plan, ...rest })),
        samples,
      },
      early,
    }
  },
}

/** One run over one link. */
export interface LinkSample extends CallsRun, Contestant {
  link: string
  /** 1 for the first round. */
  round: number
}

interface MeasuredLinks {
  results: LinkResult[]
  samples: LinkSample[]
  early: EarlyEnd | null
}

/**
 * What the options ask for, link by link. An interrupt, or a failure, leaves the rounds that were complete.
 *
 * @throws Problem, ProgramError when no round was complete; the reason of the context's signal.
 */
export async function measureLinks(
  context: Context,
  options: StoreBenchmarkOptions,
): Promise<MeasuredLinks> {
  const servers = new Map<number, Server>()
  for (const count of options.ioThreads) {
    const config = { 'io-threads': String(count) }
    servers.set(count, await context.startRedis({ build: 'patched', config }))
  }
  const contestants = options.ioThreads.flatMap((ioThreads) =>
    options.poolSizes.flatMap((poolSize) =>
      options.strategies.map((strategy): Contestant => ({ strategy, poolSize, ioThreads })),
    ),
  )
  const several = options.ioThreads.length * options.poolSizes.length > 1
  const measureLink = async (plan: LinkPlan) => {
    const open = new Map<number, { server: Server; link: OpenLink }>()
    for (const [ioThreads, server] of servers) {
      open.set(ioThreads, { server, link: await openLink(plan, server, context) })
    }
    const run = await completeRounds(context, {
      variants: contestants,
      rounds: options.rounds,
      label: ({ strategy, poolSize, ioThreads }) =>
        `${plan.name}  ${strategy}${several ? `, ${poolSize} connections, ${ioThreads} I/O threads` : ''}`,
      measure(contestant) {
        const at = open.get(contestant.ioThreads)
        if (!at) throw new RangeError('there is no such Redis')
        return runOnce(contestant, at.link.url, at.server, options, context)
      },
      describe: (run) => `${figure(run.callsPerSecond)} calls/s  p99 ${figure(run.latency.p99)} ms`,
    })
    return { ...run, pingMs: [...open.values()].map(({ link }) => link.pingMs) }
  }

  const measured: MeasuredLinks = { results: [], samples: [], early: null }
  try {
    for (const plan of options.links) {
      const { samples, early, pingMs } = await measureLink(plan)
      measured.results.push({ plan, pingMs, rows: summarizeCalls(contestants, samples) })
      for (const { variant, round, sample } of samples) {
        measured.samples.push({ link: plan.name, ...variant, round, ...sample })
      }
      if (early) return { ...measured, early }
    }
    return measured
  } catch (error) {
    if (measured.results.length === 0) throw error
    return { ...measured, early: await earlyEnd(error, context) }
  }
}

function configure(command: Command): void {
  addRounds(command, { rounds: 3, duration: 1 })
  command
    .addOption(
      new Option('--operation <name>', "updateToken (the documents') or recordView")
        .choices(operations)
        .default('update-token'),
    )
    .addOption(
      new Option('--strategies <list>', `out of ${strategyNames.join(', ')}`)
        .argParser(listOf(strategyNames))
        .default([...strategyNames], 'all'),
    )
    .addOption(
      new Option('--links <list>', `out of ${linkNames.join(', ')}, or like 5ms@100Mb/s`)
        .argParser(links)
        .default(links(linkNames.join(',')), linkNames.join(',')),
    )
    .option('--concurrency <n>', 'calls in flight at the same time', wholeNumber(1, 1_000), 1)
    .option(
      '--items <n>',
      'items that are viewed (default: 1, or 1000 with several calls in flight)',
      wholeNumber(1, 1_000),
    )
    .addOption(
      new Option('--pool-sizes <list>', 'connections of the pool')
        .argParser(numbers(1, 100))
        .default([1], '1'),
    )
    .addOption(
      new Option('--io-threads <list>', 'of Redis, its main thread included')
        .argParser(numbers(1, 64))
        .default([1], '1'),
    )
}

/** Long enough for the slowest call, a connection each over the slowest link. */
const DEADLINE_MS = 30_000

async function runOnce(
  { strategy, poolSize }: Contestant,
  url: string,
  server: Server,
  options: StoreBenchmarkOptions,
  { signal }: Context,
): Promise<CallsRun> {
  const { operation, concurrency, duration } = options
  const { items = concurrency === 1 ? 1 : 1_000 } = options
  const tokens = { secrets: [newSecret()] }
  const store = createSessionStore({
    ...{ url, strategy, poolSize, tokens },
    deadlineMs: DEADLINE_MS,
    janitor: false, // its commands are no part of what is measured
  })
  try {
    await store.ready()
    const before = await countedViews(server)
    const run = await measureCalls(store, server, {
      operation,
      concurrency,
      items,
      seconds: duration,
      signal,
    })
    const counted = (await countedViews(server)) - before
    if (counted !== run.allCalls) {
      throw new Problem(
        `${strategy} made ${run.allCalls} calls, but Redis counted ${counted} views: that must not happen.`,
      )
    }
    return run
  } finally {
    await store.close()
  }
}

/** The views of all items, as the store counts them. */
async function countedViews({ url }: Server): Promise<number> {
  const tokens = { secrets: [newSecret()] }
  const store = createSessionStore({ url, strategy: 'sequential', tokens, janitor: false })
  try {
    await store.ready()
    const popular = await store.popularItems(1_000)
    return popular.reduce((sum, { views }) => sum + views, 0)
  } finally {
    await store.close()
  }
}
