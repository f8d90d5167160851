import { join } from 'node:path'
import { Command, Option } from 'commander'
import {
  hideCredentials,
  redisAddress,
  redisOfEnvironment,
  type Transport,
  transports,
} from '../address.ts'
import { portsFrom } from '../cluster.ts'
import { port } from '../parsers.ts'
import { places } from '../places.ts'
import { Problem } from '../problem.ts'
import { type RedisBuild, redisBuild, redisBuilds } from '../redis.ts'
import type { ForeignRedis, OwnCluster, OwnRedis } from '../stack-redis.ts'

const MAX_PORT = 65_535

interface Flags {
  /** Of the pooled API. */
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
  /** Path of an installed redis-server (REDIS_SERVER) that runs instead of a build. */
  installed: string | null
  /** Whether users log in with passwords (AUTH=password), which the APIs read from USERS_FILE. */
  passwords: boolean
}

/** The options for Redis that `npm start` and `npm run load` share. */
export function redisOptions(): { build: Option; transport: Option } {
  return {
    build: new Option('--redis-build <build>', 'which build of Redis')
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
      'Starts the whole of Onetrip on this machine: Redis, the pooled API and the naive one.\n' +
        'Builds Redis first if that has not happened yet. Ctrl-C stops all of it.',
    )
    .addOption(portOption('port', 'port of the pooled API', 'PORT', 3000))
    .addOption(portOption('naive-port', 'port of the naive API', 'NAIVE_PORT', 3001))
    .addOption(
      new Option('--host <address>', 'where both APIs listen').env('HOST').default('127.0.0.1'),
    )
    .addOption(
      portOption(
        'redis-port',
        'port of Redis, always on 127.0.0.1; of a cluster, the first of 12',
        'REDIS_PORT',
        6390,
      ),
    )
    .addOption(build.env('REDIS_BUILD').default('patched'))
    .addOption(transport.env('TRANSPORT').default('tcp'))
    .option('--cluster', 'three primaries and three replicas instead of one Redis')
    .option('--no-race', 'without the race on the demo page (env: RACE=off)')
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
  AUTH           password: users of USERS_FILE log in (default: every name logs in)
  LOG_LEVEL      what the APIs log (default: warn)
  RISK_FEATURES  false: no risk features of logins (default: true)

Examples:
  npm start
  npm start -- --port 8080 --naive-port 8081
  npm start -- --redis-build baseline --transport unix
  npm start -- --cluster
  REDIS_URL=redis://127.0.0.1:6379 npm start`,
    )
}

/**
 * The settings of the command line and the environment.
 *
 * @throws Problem when two of them contradict each other.
 */
export async function settingsOf(command: Command, env: NodeJS.ProcessEnv): Promise<StartSettings> {
  const { host, port, naivePort, redisPort, redisBuild, transport, cluster } = command.opts<Flags>()
  const { REDIS_SERVER: installed, RACE: race = 'on' } = env
  if (race !== 'on' && race !== 'off') throw new Problem(`RACE is "${race}": it must be on or off.`)
  const url = await redisOfEnvironment(env)
  if (url && installed) {
    throw new Problem('REDIS_URL and REDIS_SERVER are both set; only one Redis can be used.')
  }
  const refuse = (flags: Record<string, string>, because: string) => {
    for (const [name, flag] of Object.entries(flags)) {
      if (command.getOptionValueSource(name) !== 'cli') continue
      throw new Problem(`${flag} has no effect: ${because}. Remove one of them.`)
    }
  }
  const aboutBuild = { redisBuild: '--redis-build' }
  if (url) {
    redisAddress(url)
    const aboutOwn = {
      ...{ ...aboutBuild, redisPort: '--redis-port' },
      ...{ transport: '--transport', cluster: '--cluster' },
    }
    refuse(aboutOwn, `REDIS_URL (${hideCredentials(url)}) selects a Redis that runs already`)
  }
  for (const name of ['REDIS_CLUSTER', 'REDIS_SENTINELS'] as const) {
    if (!env[name]) continue
    throw new Problem(
      `${name} is set, but npm start uses a running Redis only by REDIS_URL. Unset it; npm start -- --cluster starts a cluster.`,
    )
  }
  if (cluster) {
    refuse({ transport: '--transport' }, 'a cluster is reached by TCP')
    if (transport !== 'tcp') {
      throw new Problem(`TRANSPORT is "${transport}", but a cluster is reached by TCP. Unset it.`)
    }
    const last = portsFrom(redisPort).at(-1) ?? 0
    if (last > MAX_PORT) {
      throw new Problem(
        `--redis-port or REDIS_PORT is ${redisPort}: a cluster has 12 ports from there on, so it may be ${MAX_PORT - 11} at most.`,
      )
    }
  }
  if (installed) refuse(aboutBuild, `REDIS_SERVER (${installed}) selects an installed server`)
  const { run, data, secrets } = places(env)
  // Another version may not be able to read the data of our builds.
  const program = installed ? 'installed' : redisBuild
  const directory = join(data, cluster ? `cluster-${program}` : program)
  const own = { build: redisBuild, port: redisPort, secrets, directory }
  return {
    ...{ host, port, naivePort },
    race: race === 'on' && command.opts<Flags>().race,
    installed: installed || null,
    passwords: env.AUTH === 'password',
    redis: url
      ? { kind: 'foreign', url }
      : cluster
        ? { kind: 'cluster', ...own }
        : { kind: 'own', transport, run, ...own },
  }
}
