import { type Transport, transports } from '@onetrip/stack/address.ts'
import { list, listOf, wholeNumber } from '@onetrip/stack/parsers.ts'
import { type RedisBuild, redisBuild, redisBuilds } from '@onetrip/stack/start-redis.ts'
import { type Command, Option } from 'commander'

const numbers = (min: number, max: number) => list(wholeNumber(min, max))

const MAX_IDLE = 1_000_000
/** In place of a number of idle connections: as many as possible. */
export const MOST = Number.POSITIVE_INFINITY
const idle = (text: string) => (text === 'most' ? MOST : wholeNumber(0, MAX_IDLE)(text))

/** What `--commands` accepts, see `threads/commands.ts`. */
export const commandNames = ['GET', 'SET', 'MIX', 'MGET', 'LPUSH'] as const
/** What `--sets` accepts. */
export const sets = ['usual', 'node-clients', 'info', 'big-keys'] as const
/** What `--shape` accepts: loads of the articles, and loads that leave Redis idle most of the time. */
export const articleShapes = ['get-8000'] as const
const lightShapes = ['rates', 'burst', 'half-close'] as const
const shapes = [...articleShapes, ...lightShapes] as const

const any = (names: readonly string[]) => `any of ${names.join(', ')}`

/** The options of the experiment. Every preset has some of them. */
export interface RedisSettings {
  builds: RedisBuild[]
  threads: number[]
  idle: number[]
  transports: Transport[]
  connections: number
  long: number
  maxclients: number | undefined
  rate: number | undefined
  shape: (typeof shapes)[number][] | undefined
  commands: (typeof commandNames)[number][]
  sets: (typeof sets)[number][]
  bytes: number[]
  pipeline: number[]
  values: number[]
  lengths: number[]
  elements: number
  requests: number | undefined
}

const options: {
  [Name in keyof RedisSettings]: readonly [
    flag: string,
    help: string,
    parse: (text: string) => NonNullable<RedisSettings[Name]>,
  ]
} = {
  builds: [
    '--builds <list>',
    `${any(redisBuilds)}; patched@0005 has the patches up to 0005`,
    list(redisBuild),
  ],
  threads: ['--threads <list>', 'settings of io-threads; 1 means off', numbers(1, 128)],
  idle: ['--idle <list>', 'idle connections; "most": as many as possible', list(idle)],
  transports: ['--transports <list>', any(transports), listOf(transports)],
  connections: ['--connections <n>', 'concurrent connections', wholeNumber(1, 100_000)],
  long: ['--long <n>', 'concurrent long connections', wholeNumber(0, 10_000)],
  maxclients: [
    '--maxclients <n>',
    "Redis's maxclients (default: enough for all connections)",
    wholeNumber(1, MAX_IDLE),
  ],
  rate: [
    '--rate <n>',
    'commands/s of all connections (default: no limit)',
    wholeNumber(1, 1_000_000),
  ],
  shape: ['--shape <list>', `other loads instead, ${any(shapes)}`, listOf(shapes)],
  commands: ['--commands <list>', any(commandNames), listOf(commandNames)],
  sets: ['--sets <list>', any(sets), listOf(sets)],
  bytes: ['--bytes <list>', 'sizes of the values', numbers(1, 2 ** 24)],
  pipeline: ['--pipeline <list>', 'commands per pipeline', numbers(1, 10_000)],
  values: ['--values <list>', 'values per request', numbers(1, 10_000)],
  lengths: ['--lengths <list>', 'elements of an LRANGE', numbers(1, 1e6)],
  elements: ['--elements <n>', 'elements of a deleted key', wholeNumber(1_000, 20_000_000)],
  requests: ['--requests <n>', 'requests of a run of redis-benchmark', wholeNumber(1, 1e9)],
}

/** Adds the options that have a key in `defaults`. */
export function addSettings(command: Command, defaults: Partial<RedisSettings>): void {
  for (const [name, value] of Object.entries(defaults)) {
    const [flags, help, parse] = options[name as keyof RedisSettings]
    const option = new Option(flags, help).argParser<unknown>(parse)
    if (value !== undefined) option.default(value, String(value))
    command.addOption(option)
  }
}
