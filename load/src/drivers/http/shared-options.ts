import { ownHostOption } from '@onetrip/stack/address.ts'
import { listOfUrls, share, wholeNumber } from '@onetrip/stack/parsers.ts'
import { redisOptions } from '@onetrip/stack/start/settings.ts'
import { type Command, Option } from 'commander'
import { MAX_SEED } from './workload.ts'

// Options of all commands that send requests over HTTP.

const workloads = {
  realistic: { sessions: 1_000, items: 1_000, reads: 0.2 },
  /** What the documents' own benchmark did: one token, one item, and nothing but updates. */
  documents: { sessions: 1, items: 1, reads: 0 },
}

export interface WorkloadFlags {
  connections: number
  workload: keyof typeof workloads
  sessions?: number
  items?: number
  reads?: number
  seed: number
  url?: string[]
}

/** Adds `--workload`, and the options that change a part of it. */
export function addWorkload(command: Command): Command {
  const { items, reads } = workloads.realistic
  const count = wholeNumber(1, 100_000)
  const sessions =
    'users logged in (default: 1,000, at least as many as connections; with --url as many)'
  return command
    .addOption(
      new Option('--workload <name>', 'what is requested')
        .choices(Object.keys(workloads))
        .default('realistic'),
    )
    .option('--sessions <n>', sessions, count)
    .option('--items <n>', `items, viewed by Zipf's law (default: ${items})`, count)
    .option('--reads <share>', `share of reading requests (default: ${reads})`, share)
    .option('--seed <n>', 'for the same requests again', wholeNumber(1, MAX_SEED), 17)
}

/** The options, with what the workload stands for where the user does not say otherwise. */
export function withWorkload<Options extends WorkloadFlags>(
  options: Options,
): Options & (typeof workloads)['realistic'] {
  const { connections, workload, url } = options
  const usual = workloads[workload]
  if (workload === 'documents') return { ...usual, ...options }
  // A stack that the user names may limit how many users log in from one address.
  const sessions = url ? connections : Math.max(usual.sessions, connections)
  return { ...usual, sessions, ...options }
}

/** The options that make two workloads different. */
export const workloadOptionNames = ['workload', 'sessions', 'items', 'reads', 'seed'] as const

/** Adds the options of `TargetOptions`, except the variants. */
export function addTarget(command: Command): Command {
  const { build, transport } = redisOptions()
  const url = 'APIs that run already, wherever that is; their Redis is REDIS_URL'
  return command
    .option('--workers <n>', 'processes of each API of an own stack', wholeNumber(1, 64))
    .addOption(
      new Option('--url <list>', url)
        .argParser(listOfUrls)
        .conflicts(['variants', 'redisBuild', 'transport', 'workers']),
    )
    .option(ownHostOption, 'these hosts are mine to put load on, though they are not this machine')
    .addOption(build)
    .addOption(transport)
}
