import { ownHostOption, redisAddress } from '@onetrip/stack/address.ts'
import { seconds, wholeNumber } from '@onetrip/stack/parsers.ts'
import { Option } from 'commander'
import { addRounds, type RoundsOptions } from '../../drivers/redis/options.ts'
import { requireRedisBenchmark } from '../../drivers/redis/redis-benchmark.ts'
import { figure } from '../../table.ts'
import { clientFigures } from '../documents.ts'
import type { Context, Experiment } from '../experiment.ts'
import { interleave, samplesOf } from '../rounds.ts'
import { missingKey } from './client-loops.ts'
import { findings, labels } from './client-report.ts'
import { type Bench, runClient, runnable } from './client-run.ts'
import { summarizeRuns } from './client-summary.ts'
import {
  Address,
  findTarget,
  type Others,
  reach,
  type Target,
  watchOthers,
} from './client-target.ts'

interface ClientOptions extends RoundsOptions {
  url?: Address
  iOwnThisHost?: boolean
  /** Commands per second of the user's own client. */
  mine?: number
  /** Seconds. */
  watch: number
}

/** The documents' table: what the rate of a single client says about how it uses its connection. */
export const client: Experiment<ClientOptions> = {
  name: 'client',
  summary: 'one client beside redis-benchmark -c 1: does it keep its connection?',
  about: `
Each client asks for a key that does not exist (GET ${missingKey}; the store, which has no
such call, by one ZRANGE), one command at a time unless the row says otherwise, and nothing is
written. Without --url it measures a Redis of its own; connections per command and the CPU time of
Redis's main thread are counted there only.

With --url, or REDIS_URL in the environment, it diagnoses a server of yours: one command at a time, at
most 1,000 commands and 200 connections in a run. First it looks for a few seconds at what the
server's other clients do. --mine tells it what your own client reaches with one connection, and it
says what that means. A password is only taken from REDIS_URL, and never given to redis-benchmark,
where everybody would see it: a plain socket is the reference then, as it is with TLS.

Examples:
  npm run load -- redis client
  npm run load -- redis client --url redis://127.0.0.1:6379 --mine 9000
  REDIS_URL=rediss://me:secret@cache.example:6380 npm run load -- redis client ${ownHostOption}`,

  configure(command) {
    addRounds(command, { rounds: 25, duration: 0.12 })
    command
      .addOption(
        new Option('--url <url>', 'a server of yours, instead of one of its own')
          .env('REDIS_URL')
          .argParser((url) => (url === '' ? undefined : new Address(url))),
      )
      .option(ownHostOption, 'the server of --url is another machine, and mine to put load on')
      .option('--mine <n>', 'commands per second of your own client', wholeNumber(1, 100_000_000))
      .option('--watch <seconds>', "how long to watch --url's other clients", seconds(0, 60), 3)
  },
  quick: { rounds: 5, duration: 0.1, watch: 1 },

  async run(context, options) {
    const { url, iOwnThisHost = false, rounds, duration, mine, watch } = options
    const target = await findTarget(context, url, iOwnThisHost)
    await reach(target)
    const program = await usableBenchmark(target, context.signal)
    const bench: Bench = { context, target, program, rates: new Map() }
    const clients = runnable(bench)
    const reference = program === null ? 'raw' : 'benchmark'
    const others = url && watch > 0 ? await watched(context, target, watch) : undefined
    context.progress.begin('Warm-up')
    for (const name of clients) {
      context.progress.update(labels[name])
      await runClient(bench, name, duration / 2)
    }
    context.progress.end('done')
    const taken = await interleave(context, {
      variants: clients,
      rounds,
      label: (name) => labels[name],
      measure: (name) => runClient(bench, name, duration),
      describe: ({ perSecond, error }) =>
        `${figure(perSecond)} commands/s${error ? `  ended early: ${error.message}` : ''}`,
    })
    const rows = summarizeRuns(clients, reference, (name) => samplesOf(taken, name))
    return {
      ...findings({ rows, reference, mine, others }),
      documents: clientFigures,
      data: {
        target: { name: target.name, own: url === undefined },
        reference,
        others: others ?? null,
        summaries: rows,
        samples: taken.map(({ variant, round, sample }) => ({ client: variant, round, ...sample })),
      },
    }
  },
}

/** redis-benchmark takes a password as an argument only, and ours is built without TLS. */
async function usableBenchmark(target: Target, signal: AbortSignal): Promise<string | null> {
  const { password, tls } = redisAddress(target.url).options
  if (password || tls) return null
  return (await requireRedisBenchmark(signal)) ?? null
}

async function watched(context: Context, target: Target, length: number): Promise<Others | null> {
  context.progress.begin(`Watching the other clients for ${length} s`)
  const others = await watchOthers(target.url, length, context.signal)
  context.progress.end(others ? 'done' : 'this user may not call INFO')
  return others
}
