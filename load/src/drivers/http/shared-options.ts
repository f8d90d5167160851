import { ownHostOption } from '@onetrip/stack/address.ts'
import { MAX_SEED, type WorkloadName, workloadNames } from '@onetrip/stack/measure/workload.ts'
import { listOfUrls, seconds, share, wholeNumber } from '@onetrip/stack/parsers.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { redisOptions } from '@onetrip/stack/start/settings.ts'
import { type Command, Option } from 'commander'
import { type Variant, variants } from '../../variants.ts'
import { namesOption } from '../redis/options.ts'
import { addRequest, hasRequest, type RequestFlags } from './request.ts'

// Options of all commands that send requests over HTTP.

const workloads: Record<WorkloadName, { sessions: number; items: number; reads: number }> = {
  realistic: { sessions: 1_000, items: 1_000, reads: 0.2 },
  /** What the source articles' own benchmark did: one token, one item, and nothing but updates. */
  documents: { sessions: 1, items: 1, reads: 0 },
  sale: { sessions: 1_000, items: 1_000, reads: 0 },
  feed: { sessions: 1_000, items: 1_000, reads: 0.8 },
  unique: { sessions: 1_000, items: 1_000, reads: 0 },
  risk: { sessions: 1_000, items: 1, reads: 1 },
}

export interface WorkloadFlags extends RequestFlags {
  connections: number
  variants: Variant[]
  /** Seconds, per variant. */
  warmup: number
  workload?: WorkloadName
  seed: number
  /** Filled in by `withWorkload`. */
  sessions: number
  items: number
  reads: number
  url?: string[]
}

/** What is the same for each experiment but the defaults. */
interface Defaults {
  variants: readonly Variant[]
  /** Seconds. */
  warmup: number
  /** Default: all. */
  workloads?: readonly WorkloadName[]
}

/** Adds `--variants`, `--warmup`, `--workload`, and the options that change a part of the workload. */
export function addWorkload(command: Command, defaults: Defaults): Command {
  const warmup = 'per variant, before the first round'
  const { items, reads } = workloads.realistic
  const count = wholeNumber(1, 100_000)
  const sessions =
    'users logged in (default: 1,000, at least as many as connections; with --url as many)'
  return command
    .addOption(namesOption('--variants <list>', variants, defaults.variants))
    .option('--warmup <seconds>', warmup, seconds(0, 600), defaults.warmup)
    .addOption(
      new Option('--workload <name>', 'what is requested (default: realistic)').choices(
        defaults.workloads ?? workloadNames,
      ),
    )
    .option('--sessions <n>', sessions, count)
    .option('--items <n>', `items, viewed by Zipf's law (realistic: ${items})`, count)
    .option('--reads <share>', `share of reading requests (realistic: ${reads})`, share)
    .option('--seed <n>', 'for the same requests again', wholeNumber(1, MAX_SEED), 17)
}

/** The options, with what the workload stands for where the user does not say otherwise. */
export function withWorkload<Options extends WorkloadFlags>(options: Options): Options {
  const { connections, workload = 'realistic', url } = options
  if (hasRequest(options)) return withoutWorkload(options)
  const usual = workloads[workload]
  if (workload === 'risk' && (options.reads ?? 1) < 1) {
    throw new Problem('--reads has no effect on --workload risk, which only reads.')
  }
  // A stack that the user names may limit how many users log in from one address.
  const sessions = url ? connections : Math.max(usual.sessions, connections)
  const defaults = workload === 'documents' ? usual : { ...usual, sessions }
  return { workload, ...defaults, ...options, ...(url && { variants: [] }) }
}

/** @throws Problem when options of the workload are given, which does not take part. */
function withoutWorkload<Options extends WorkloadFlags>(options: Options): Options {
  const { workload, sessions, items, reads } = options
  const isGiven = [workload, sessions, items, reads].some((one) => one !== undefined)
  if (!isGiven) return { ...options, variants: [] }
  throw new Problem(
    '--workload, --sessions, --items and --reads have no effect on a --url with a path, or beside --method, --header and --body.',
  )
}

/** The options that make two workloads different. */
export const workloadOptionNames = ['workload', 'sessions', 'items', 'reads', 'seed'] as const
/** Those, and the ones that `addTarget` adds. */
export const requestOptionNames = [...workloadOptionNames, 'method', 'header', 'body'] as const

/** Adds `--connections`, and the options of `TargetOptions` except the variants. */
export function addTarget(command: Command): Command {
  const { build, transport } = redisOptions()
  const url = 'APIs that run already, their Redis being REDIS_URL; or any HTTP service'
  const threads =
    "of an own stack's Redis, its main thread included (default: REDIS_IO_THREADS, else by cores)"
  return addRequest(command)
    .option('--connections <n>', 'HTTP connections at the same time', wholeNumber(1, 10_000), 64)
    .option('--workers <n>', 'processes of each API of an own stack', wholeNumber(1, 64))
    .addOption(
      new Option('--url <list>', url)
        .argParser(listOfUrls)
        .conflicts(['variants', 'redisBuild', 'transport', 'workers', 'ioThreads']),
    )
    .option(ownHostOption, 'these hosts are mine to put load on, though they are not this machine')
    .addOption(build)
    .addOption(transport)
    .option('--io-threads <n>', threads, wholeNumber(1, 128))
}
