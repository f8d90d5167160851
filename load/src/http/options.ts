import { strategyNames } from '@onetrip/session-store'
import { Command, Option } from 'commander'
import { listOf, listOfUrls, seconds, wholeNumber } from '../options.ts'
import { ownHostOption, type Transport } from '../stack/address.ts'
import { type Variant, variants } from '../stack/api.ts'
import type { RedisBuild } from '../stack/redis.ts'
import { redisOptions } from '../start/settings.ts'
import { type GeneratorName, generators } from './generator.ts'
import { MAX_SEED } from './workload.ts'

export interface HttpOptions {
  connections: number
  /** Seconds per run. */
  duration: number
  rounds: number
  variants: Variant[]
  generator: GeneratorName
  /** Seconds of warm-up per variant. */
  warmup: number
  /** Default: as many as connections. */
  sessions?: number
  items: number
  seed: number
  /** Given only if the user wants this build, whatever runs already. */
  redisBuild?: RedisBuild
  /** Likewise. */
  transport?: Transport
  /** APIs of a running stack, instead of one that npm start runs or this starts. */
  url?: string[]
  iOwnThisHost?: boolean
  json?: string
}

/** The subcommand's options and help; what it does is added by the caller. */
export function httpCommand(): Command {
  const { build, transport } = redisOptions()
  return new Command('http')
    .description('compare the variants of the API: POST /views at full speed')
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
    .option('--sessions <n>', 'users logged in (default: as connections)', wholeNumber(1, 100_000))
    .option(
      '--items <n>',
      'items that are viewed, few of them often',
      wholeNumber(1, 100_000),
      1000,
    )
    .option('--seed <n>', 'for the same views again', wholeNumber(1, MAX_SEED), 17)
    .addOption(
      new Option(
        '--url <list>',
        'APIs that run already, wherever that is; their Redis is REDIS_URL',
      )
        .argParser(listOfUrls)
        .conflicts(['variants', 'redisBuild', 'transport']),
    )
    .option(ownHostOption, 'these hosts are mine to put load on, though they are not this machine')
    .addOption(build)
    .addOption(transport)
    .option('--json <file>', 'write everything, with all samples, to this file')
    .addHelpText(
      'after',
      `
It measures what npm start runs. If nothing runs, or not what --variants, --redis-build or
--transport ask for, it starts a stack of its own and removes it afterwards.

Each round runs every variant once, in changing order. Rates are medians over the rounds, with the
range; a ratio compares two runs of the same round.

Variants: our strategies (${strategyNames.join(', ')}); noop, the route that asks Redis nothing; and
other clients behind the same route: node-redis (a pipeline per request), node-redis-batch (batched as
ours), glide (valkey-glide, a batch per request) and autopipelining (ioredis's own).

Generators: autocannon comes with the repository. wrk has to be installed (apt-get install wrk), costs
a fraction of the CPU, and runs for whole seconds.

Environment:
  REDIS_URL         with --url: the Redis of those APIs, to be watched (it needs INFO only)
  REDIS_PASSWORD_FILE   with --url: a file with the password for REDIS_URL
  REDIS_URL, REDIS_SERVER, ONETRIP_HOME, ONETRIP_STATE   as for npm start (npm start -- --help)
  REDIS_POOL_SIZE   connections that each API of an own stack shares (default 1)
  REDIS_IO_THREADS  I/O threads of the Redis of an own stack

Examples:
  npm run load
  npm run load -- --connections 8 --duration 2 --rounds 3
  npm run load -- --variants naive,sequential,pipeline --json results.json
  npm run load -- --generator wrk --variants noop,batch,pipeline,node-redis,glide
  npm run load -- --redis-build baseline --transport unix
  REDIS_URL=redis://127.0.0.1:6379 npm run load -- --url http://127.0.0.1:3000,http://127.0.0.1:3001`,
    )
}
