import { join } from 'node:path'
import { Command, Option } from 'commander'
import { hideCredentials, runningRedis, type Transport, transports } from '../address.ts'
import { port } from '../parsers.ts'
import { places } from '../places.ts'
import { Problem } from '../problem.ts'
import type { ForeignRedis, OwnCluster, OwnRedis } from '../stack-redis.ts'
import { type RedisBuild, redisBuild, redisBuilds } from '../start-redis.ts'

/** Options that have no effect with REDIS_URL. */
const ownRedisOptions = ['redisBuild', 'redisPort', 'transport', 'cluster']

interface Flags {
  /** Port of the batch API. */
  port: number
  naivePort: number
  host: string
  redisPort: number
  redisBuild: RedisBuild
  transport: Transport
  cluster: boolean
  race: boolean
}

export interface StartSettings extends Pick<Flags, 'host' | 'port' | 'naivePort' | 'race'> {
  redis: OwnRedis | OwnCluster | ForeignRedis
  /** Path of an installed redis-server (REDIS_SERVER) that is used instead of a build. */
  installed: string | null
}

/** The options for Redis that `npm start` and `npm run load` share. */
export function redisOptions(): { build: Option; transport: Option } {
  return {
    build: new Option('--redis-build <build>', 'build of Redis')
      .choices(redisBuilds)
      .argParser(redisBuild),
    transport: new Option('--transport <transport>', 'how the APIs reach Redis').choices(
      transports,
    ),
  }
}

export function startCommand(): Command {
  const { build, transport } = redisOptions()
  const portOption = (name: string, what: string, env: string, usual: number) =>
    new Option(`--${name} <port>`, what).env(env).default(usual).argParser(port)
  return new Command('npm start --')
    .description(
      'Starts Onetrip on this machine: Redis, the batch API and the naive API ' +
        '(a connection per request). Builds Redis first if necessary. Ctrl-C stops everything.',
    )
    .addOption(portOption('port', 'port of the batch API', 'PORT', 3000))
    .addOption(portOption('naive-port', 'port of the naive API', 'NAIVE_PORT', 3001))
    .addOption(
      new Option('--host <address>', 'address of both APIs').env('HOST').default('127.0.0.1'),
    )
    .addOption(
      portOption(
        'redis-port',
        'port of Redis on 127.0.0.1; with --cluster, the first of 12 ports',
        'REDIS_PORT',
        6390,
      ),
    )
    .addOption(build.env('REDIS_BUILD').default('patched'))
    .addOption(transport.env('TRANSPORT').default('tcp'))
    .addOption(
      new Option(
        '--cluster',
        'start three primaries and three replicas instead of one Redis, over TCP',
      ).conflicts('transport'),
    )
    .option('--no-race', 'no race on the demo page (env: RACE=off)')
    .allowExcessArguments(false)
    .addHelpText(
      'after',
      `
Builds of Redis (docs/redis-patches.md):
  patched   Redis with Debian's security patches and our patches
  stock     Redis with Debian's security patches
  baseline  stock with the search on close and the slow INFO of Redis before version 5

Further environment variables:
  REDIS_URL      use this running Redis (redis://… or unix:///…); builds and starts none
  REDIS_SERVER   start this installed redis-server instead of our build
  REDIS_IO_THREADS
                 I/O threads of the Redis that is started, with its main thread; 1: off
                 (default: half of the cores, at least 2, at most 4)
  ONETRIP_HOME   folder of builds and data (default: .onetrip in the repository)
  ONETRIP_STATE  folder of data, socket and secrets; set it to run a second stack with the same
                 builds (default: ONETRIP_HOME)
  LOG_LEVEL      log level of the APIs (default: warn)

Examples:
  npm start
  npm start -- --port 8080 --naive-port 8081
  npm start -- --redis-build baseline --transport unix
  npm start -- --cluster
  REDIS_URL=redis://127.0.0.1:6379 npm start`,
    )
}

/**
 * Reads the settings from the command line and the environment.
 *
 * @throws Problem if two settings contradict each other.
 */
export function settingsOf(command: Command, env: NodeJS.ProcessEnv): StartSettings {
  const { host, port, naivePort, redisPort, redisBuild, transport, cluster } = command.opts<Flags>()
  const { REDIS_SERVER: installed, RACE: race = 'on' } = env
  if (race !== 'on' && race !== 'off') throw new Problem(`RACE is "${race}": it must be on or off.`)
  const url = runningRedis(env)
  if (url && installed) {
    throw new Problem('REDIS_URL and REDIS_SERVER are both set. Unset one of them.')
  }
  const own = url ? ownRedisOptions : installed ? ['redisBuild'] : []
  const unused = command.options.find(
    (option) =>
      own.includes(option.attributeName()) &&
      command.getOptionValueSource(option.attributeName()) === 'cli',
  )
  if (unused) {
    const because = url
      ? `REDIS_URL (${hideCredentials(url)}) selects a running Redis`
      : `REDIS_SERVER (${installed}) selects an installed server`
    throw new Problem(`${unused.long} has no effect: ${because}. Remove one of them.`)
  }
  const { run, data, secrets } = places(env)
  // A separate folder, because another version may not be able to read the data of our builds.
  const program = installed ? 'installed' : redisBuild
  const directory = join(data, cluster ? `cluster-${program}` : program)
  const common = { build: redisBuild, port: redisPort, secrets, directory }
  return {
    host,
    port,
    naivePort,
    race: race === 'on' && command.opts<Flags>().race,
    installed: installed || null,
    redis: url
      ? { kind: 'foreign', url }
      : cluster
        ? { kind: 'cluster', ...common }
        : { kind: 'own', transport, run, ...common },
  }
}
