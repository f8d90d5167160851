import { strategyNames } from '@onetrip/session-store'
import { listOf, seconds, wholeNumber } from '@onetrip/stack/parsers.ts'
import { Command, Option } from 'commander'
import { addComparison, type ComparisonOptions } from '../compare/options.ts'
import { variants } from '../contenders.ts'
import { generators } from '../drivers/http/generator.ts'
import type { TargetOptions } from '../drivers/http/target.ts'
import { addPresets, type Presets, withPresets } from '../presets.ts'
import { addOutputs, type OutputFlags } from '../report/outputs.ts'
import type { HttpSettings } from './result.ts'
import { addTarget, addWorkload, withWorkload } from './shared-options.ts'

export type HttpOptions = HttpSettings & TargetOptions & OutputFlags & ComparisonOptions

const presets: Presets<HttpOptions> = {
  quick: { rounds: 5, duration: 2, warmup: 1 },
  full: { rounds: 7, duration: 5, warmup: 3, variants: [...variants] },
}

/** The options of `http`, with presets and defaults filled in. */
export function httpOptions(command: Command): HttpOptions {
  return withWorkload(command, withPresets(command, presets))
}

/** The subcommand's options and help; what it does is added by the caller. */
export function httpCommand(): Command {
  const command = new Command('http')
    .description('compare the variants of the API at full speed')
    .option('--connections <n>', 'HTTP connections at the same time', wholeNumber(1, 10_000), 64)
    .option('--duration <seconds>', 'length of one run', seconds(0.5, 3_600), 5)
    .option('--rounds <n>', 'how often each variant is run', wholeNumber(1, 1_000), 5)
    .addOption(
      new Option('--variants <list>', `out of ${variants.join(', ')}`)
        .argParser(listOf(variants))
        .default(['naive', 'batch'], 'naive,batch'),
    )
    .addOption(
      new Option('--generator <name>', 'what sends the requests')
        .choices(generators)
        .default('autocannon'),
    )
    .option('--warmup <seconds>', 'per variant, before the first round', seconds(0, 600), 2)
  addTarget(addWorkload(command))
  addPresets(command, {
    quick: 'a first impression in half a minute',
    full: 'all variants, 7 rounds; about 10 minutes',
  })
  return addOutputs(addComparison(command)).addHelpText(
    'after',
    `
It measures what npm start runs. If nothing runs, or not what --variants, --redis-build, --transport or
--workers ask for, it starts a stack of its own and removes it afterwards.

Each round runs every variant once, in changing order. Rates are medians over the rounds, with the
range; a ratio compares two runs of the same round. How it measures, and what it cannot say:
docs/method.md

Variants: our strategies (${strategyNames.join(', ')}); noop, the routes that ask Redis nothing; other
clients behind the same routes: node-redis (a pipeline per request), node-redis-batch (batched as ours),
glide (valkey-glide, a batch per request) and autopipelining (ioredis's own); and connect-redis with
@fastify/session, and with Express (express), which keep the views in the session.

Workloads:
  realistic   many sessions; POST /views, and a share of GET /me, /me/views and /items/popular
  documents   one session and one item, POST /views only: what the documents measured

Generators: autocannon comes with the repository. wrk has to be installed (apt-get install wrk), costs
a fraction of the CPU, and runs for whole seconds.

Environment:
  REDIS_URL         with --url: the Redis of those APIs, to be watched (it needs INFO only)
  REDIS_PASSWORD_FILE   a file with the password for REDIS_URL
  WORKERS           processes of each API of an own stack, or auto (default 1; --workers goes first)
  REDIS_URL, REDIS_SERVER, ONETRIP_HOME, ONETRIP_STATE   as for npm start (npm start -- --help)
  REDIS_POOL_SIZE   connections that each API of an own stack shares (default 1)
  REDIS_IO_THREADS  I/O threads of the Redis of an own stack

Examples:
  npm run load
  npm run load -- --quick
  npm run load -- --quick --compare before.json   # exits with 4 when something got worse
  npm run load -- --connections 8 --duration 2 --rounds 3
  npm run load -- --variants naive,sequential,pipeline --json results.json
  npm run load -- --generator wrk --variants noop,batch,pipeline,node-redis,glide
  npm run load -- --redis-build baseline --transport unix
  REDIS_URL=redis://127.0.0.1:6379 npm run load -- --url http://127.0.0.1:3000,http://127.0.0.1:3001`,
  )
}
