import { ownHostOption } from '@onetrip/stack/address.ts'
import { MAX_SEED } from '@onetrip/stack/measure/workload.ts'
import { list, listOfUrls, seconds, share, wholeNumber } from '@onetrip/stack/parsers.ts'
import { redisOptions } from '@onetrip/stack/start/settings.ts'
import { redisBuild, redisBuilds } from '@onetrip/stack/start-redis.ts'
import { type Command, Option } from 'commander'
import { type Variant, variants } from '../../variants.ts'
import { type Age, ageOption } from '../age.ts'
import { namesOption, numbers } from '../redis/options.ts'

// Options of all experiments over HTTP.

const workloads = {
  realistic: { sessions: 1_000, items: 1_000, reads: 0.2 },
  /** The benchmark of the articles: one token, one item, only views. */
  articles: { sessions: 1, items: 1, reads: 0 },
}
type WorkloadName = keyof typeof workloads

export interface WorkloadFlags<Connections = number> {
  connections: Connections
  variants: Variant[]
  /** Seconds per variant. */
  warmup: number
  workload?: WorkloadName
  seed: number
  /** Set by `withWorkload`, like `items` and `reads`. */
  sessions: number
  items: number
  reads: number
  url?: string[]
  processes?: Age
}

interface Defaults {
  variants: readonly Variant[]
  /** Seconds. */
  warmup: number
}

/** Adds `--variants`, `--warmup`, `--workload`, and the options that change a part of the workload. */
export function addWorkload(command: Command, defaults: Defaults): Command {
  const warmup = 'length of the warm-up of each variant'
  const { items, reads } = workloads.realistic
  const count = wholeNumber(1, 100_000)
  const sessions =
    'users to log in (default: 1,000, but at least --connections; with --url: --connections)'
  return command
    .addOption(namesOption('--variants <list>', variants, defaults.variants))
    .option('--warmup <seconds>', warmup, seconds(0, 600), defaults.warmup)
    .addOption(
      new Option('--workload <name>', 'the kind of requests (default: realistic)').choices(
        Object.keys(workloads),
      ),
    )
    .option('--sessions <n>', sessions, count)
    .option('--items <n>', `number of items, viewed by Zipf's law (realistic: ${items})`, count)
    .option('--reads <share>', `share of read requests (realistic: ${reads})`, share)
    .option('--seed <n>', 'seed of the random requests', wholeNumber(1, MAX_SEED), 17)
}

/** Fills in the defaults of the workload. */
export function withWorkload<Options extends WorkloadFlags<number | number[]>>(
  options: Options,
): Options {
  const { workload = 'realistic', url } = options
  const connections = Math.max(...[options.connections].flat())
  const usual = workloads[workload]
  // An API given by --url may limit the logins from one address.
  const sessions = url ? connections : Math.max(usual.sessions, connections)
  const defaults = workload === 'articles' ? usual : { ...usual, sessions }
  return { workload, ...defaults, ...options, ...(url && { variants: [] }) }
}

/** Adds the options of `TargetOptions`, except variants and links. */
export function addTarget(command: Command): Command {
  const url = 'running APIs, whose Redis is given by REDIS_URL'
  const threads =
    'threads of each Redis that is started, including the main thread; 1: off (default: REDIS_IO_THREADS, else half of the cores, from 2 to 4)'
  return command
    .addOption(
      new Option('--url <list>', url)
        .argParser(listOfUrls)
        .conflicts(['variants', 'redisBuild', 'transport', 'ioThreads']),
    )
    .option(ownHostOption, 'allow load on another host, which must be yours')
    .addOption(
      new Option('--redis-build <list>', `builds of Redis: ${redisBuilds.join(', ')}`).argParser(
        list(redisBuild),
      ),
    )
    .addOption(redisOptions().transport)
    .addOption(new Option('--io-threads <list>', threads).argParser(numbers(1, 128)))
    .addOption(ageOption('start an API for each run').conflicts('url'))
}
