import type { Origin } from '../../measure/machine.ts'
import { counted } from '../../table.ts'
import type { Provenance } from '../model.ts'

type Fact = readonly [label: string, text: string]

/** Where and how something was measured; `facts` are put between the machine and the commit. */
export function provenanceOf(result: Origin, facts: readonly Fact[]): Provenance {
  const { date, command, git, machine } = result
  const { cpu, cores, memoryBytes, kernel, node } = machine
  const gigabytes = (memoryBytes / 2 ** 30).toFixed(0)
  const commit = git ? `${git.commit}${git.dirty ? ', with changes that are not in it' : ''}` : '-'
  return {
    date,
    command,
    facts: [
      ['Machine', `${cpu}, ${counted(cores, 'core')}, ${gigabytes} GiB, ${kernel}`],
      ['Node', node],
      ...facts,
      ['Commit', commit],
    ],
  }
}

interface RedisOfResult {
  version: string
  build: string | null
  ioThreads: number
  transport?: string
}

/** A Redis in words. */
export function redisText({ version, build, ioThreads, transport }: RedisOfResult): string {
  const kind = build === null ? 'not a build of Onetrip' : build
  const way = transport === undefined ? '' : transport === 'unix' ? ', Unix socket' : ', TCP'
  return `${version}, ${kind}, ${counted(ioThreads, 'I/O thread')}${way}`
}

/** The clients of the variants, each with who uses it: `ioredis 6.0.0 (batch, naive)`. */
export function clientsText(clients: Readonly<Record<string, string>>): string {
  const users = Map.groupBy(Object.entries(clients), ([, client]) => client)
  const texts = [...users].map(
    ([client, entries]) => `${client} (${entries.map(([variant]) => variant).join(', ')})`,
  )
  return texts.join('; ') || '-'
}

/** `2 processes of each, a pool of 1 connection in each process`. */
export function apisText(workers: number | null, poolSize: number | null): string {
  const processes =
    workers === null ? 'not known' : workers === 1 ? '1 process' : `${workers} processes`
  const pool = poolSize === null ? 'not known' : counted(poolSize, 'connection')
  return `${processes} of each; pool: ${pool} per process`
}

interface LoadOfResult {
  connections?: number
  duration: number
  rounds: number
  warmup: number
  items: number
  seed: number
  sessions?: number
  reads?: number
  workload?: string
}

/** What was sent, and for how long. */
export function loadFacts(generator: string, options: LoadOfResult): Fact[] {
  const { connections, duration, rounds, warmup, items, seed, sessions, reads, workload } = options
  const over = connections === undefined ? '' : `${counted(connections, 'connection')}, `
  const who = sessions === undefined ? '' : `${counted(sessions, 'session')}, `
  const shares = reads ? `, ${(reads * 100).toFixed(0)} % of the requests read` : ''
  const name = workload === undefined ? '' : `${workload}: `
  return [
    [
      'Load',
      `${generator}, ${over}${counted(rounds, 'round')} of ${duration} s after ${warmup} s of warm-up`,
    ],
    ['Workload', `${name}${who}${counted(items, 'item')}, seed ${seed}${shares}`],
  ]
}
