import { join } from 'node:path'
import { Command, Option } from 'commander'
import { hideCredentials, redisAddress, type Transport, transports } from '../address.ts'
import { port } from '../parsers.ts'
import { places } from '../places.ts'
import { Problem } from '../problem.ts'
import { type RedisBuild, redisBuilds } from '../redis.ts'
import type { ForeignRedis, OwnRedis } from '../stack.ts'

export interface StartSettings {
  host: string
  pooledPort: number
  naivePort: number
  redis: OwnRedis | ForeignRedis
  /** Path of an installed redis-server (REDIS_SERVER) that runs instead of a build. */
  installed: string | null
}

interface Flags {
  port: number
  naivePort: number
  host: string
  redisPort: number
  redisBuild: RedisBuild
  transport: Transport
}

/** The options for Redis that `npm start` and `npm run load` share. */
export function redisOptions(): { build: Option; transport: Option } {
  return {
    build: new Option('--redis-build <build>', 'which build of Redis').choices(redisBuilds),
    transport: new Option('--transport <transport>', 'how the APIs reach Redis').choices(
      transports,
    ),
  }
}

export function startCommand(): Command {
  const { build, transport } = redisOptions()
  return new Command('npm start --')
    .description(
      'Starts the whole of Onetrip on this machine: Redis, the pooled API and the naive one.\n' +
        'Builds Redis first if that has not happened yet. Ctrl-C stops all of it.',
    )
    .addOption(
      new Option('--port <port>', 'port of the pooled API')
        .env('PORT')
        .default(3000)
        .argParser(port),
    )
    .addOption(
      new Option('--naive-port <port>', 'port of the naive API')
        .env('NAIVE_PORT')
        .default(3001)
        .argParser(port),
    )
    .addOption(
      new Option('--host <address>', 'where both APIs listen').env('HOST').default('127.0.0.1'),
    )
    .addOption(
      new Option('--redis-port <port>', 'port of Redis, always on 127.0.0.1')
        .env('REDIS_PORT')
        .default(6390)
        .argParser(port),
    )
    .addOption(build.env('REDIS_BUILD').default('patched'))
    .addOption(transport.env('TRANSPORT').default('tcp'))
    .allowExcessArguments(false)
    .addHelpText(
      'after',
      `
Environment, besides the variables above:
  REDIS_URL      use this running Redis (redis://… or unix:///…) and build none
  REDIS_SERVER   run this installed redis-server instead of a build of ours
  ONETRIP_HOME   where builds and data are kept (default: .onetrip in the repository)
  ONETRIP_STATE  where data, socket and secret are kept, for a second stack on the same builds
                 (default: ONETRIP_HOME)
  LOG_LEVEL      what the APIs log (default: warn)

Examples:
  npm start
  npm start -- --port 8080 --naive-port 8081
  npm start -- --redis-build baseline --transport unix
  REDIS_URL=redis://127.0.0.1:6379 npm start`,
    )
}

/**
 * The settings of the command line and the environment.
 *
 * @throws Problem when two of them contradict each other.
 */
export function settingsOf(command: Command, env: NodeJS.ProcessEnv): StartSettings {
  const flags = command.opts<Flags>()
  const { REDIS_URL: url, REDIS_SERVER: installed } = env
  const asked = (name: string) => command.getOptionValueSource(name) === 'cli'
  if (url && installed) {
    throw new Problem('REDIS_URL and REDIS_SERVER are both set; only one Redis can be used.')
  }
  if (url) {
    for (const [name, flag] of [
      ['redisBuild', '--redis-build'],
      ['redisPort', '--redis-port'],
      ['transport', '--transport'],
    ] as const) {
      if (asked(name)) {
        throw new Problem(
          `${flag} has no effect: REDIS_URL (${hideCredentials(url)}) selects a Redis that runs already. Remove one of them.`,
        )
      }
    }
    redisAddress(url)
  }
  if (installed && asked('redisBuild')) {
    throw new Problem(
      `--redis-build has no effect: REDIS_SERVER (${installed}) selects an installed server. Remove one of them.`,
    )
  }
  const { run, data, secrets } = places(env)
  return {
    host: flags.host,
    pooledPort: flags.port,
    naivePort: flags.naivePort,
    installed: installed || null,
    redis: url
      ? { kind: 'foreign', url }
      : {
          kind: 'own',
          build: flags.redisBuild,
          transport: flags.transport,
          port: flags.redisPort,
          run,
          secrets,
          // Another version may not be able to read the data of our builds.
          directory: join(data, installed ? 'installed' : flags.redisBuild),
        },
  }
}
