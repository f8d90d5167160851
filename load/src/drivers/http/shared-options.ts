import { ownHostOption } from '@onetrip/stack/address.ts'
import { listOfUrls, share, wholeNumber } from '@onetrip/stack/parsers.ts'
import { redisOptions } from '@onetrip/stack/start/settings.ts'
import { type Command, Option } from 'commander'
import { MAX_SEED, type WorkloadName, workloadNames } from './workload.ts'

// Options of all commands that send requests over HTTP.

const realistic = { sessions: 1_000, items: 1_000, reads: 0.2 }
/** What the documents' own benchmark did: one token, one item, and nothing but updates. */
const documents = { sessions: 1, items: 1, reads: 0 }

/** Adds `--workload`, and the options that change a part of it. */
export function addWorkload(command: Command): Command {
  return command
    .addOption(
      new Option('--workload <name>', 'what is requested')
        .choices(workloadNames)
        .default('realistic'),
    )
    .option(
      '--sessions <n>',
      'users logged in (default: 1,000, at least as many as connections; with --url as many)',
      wholeNumber(1, 100_000),
    )
    .option(
      '--items <n>',
      `items, viewed by Zipf's law (default: ${realistic.items})`,
      wholeNumber(1, 100_000),
    )
    .option('--reads <share>', `share of reading requests (default: ${realistic.reads})`, share)
    .option('--seed <n>', 'for the same requests again', wholeNumber(1, MAX_SEED), 17)
}

export interface WorkloadFlags {
  connections: number
  workload: WorkloadName
  sessions?: number
  items?: number
  reads?: number
  seed: number
  url?: string[]
}

/** The options, with what the workload stands for where the user does not say otherwise. */
export function withWorkload<Options extends WorkloadFlags>(
  options: Options,
): Options & { sessions: number; items: number; reads: number } {
  const { connections, workload, url } = options
  if (workload === 'documents') return { ...documents, ...options }
  // A stack that the user names may limit how many users log in from one address.
  const sessions = url ? connections : Math.max(realistic.sessions, connections)
  return { ...realistic, sessions, ...options }
}

/** The options that make two workloads different. */
export const workloadOptionNames = ['workload', 'sessions', 'items', 'reads', 'seed'] as const

/** Adds the options of `TargetOptions`, except the variants. */
export function addTarget(command: Command): Command {
  const { build, transport } = redisOptions()
  return command
    .option('--workers <n>', 'processes of each API of an own stack', wholeNumber(1, 64))
    .addOption(
      new Option(
        '--url <list>',
        'APIs that run already, wherever that is; their Redis is REDIS_URL',
      )
        .argParser(listOfUrls)
        .conflicts(['variants', 'redisBuild', 'transport', 'workers']),
    )
    .option(ownHostOption, 'these hosts are mine to put load on, though they are not this machine')
    .addOption(build)
    .addOption(transport)
}
