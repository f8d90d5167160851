import { resolve } from 'node:path'
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { type BuildOptions, ensureBuilt } from './build.ts'
import {
  type BuildName,
  buildNames,
  isServerBuild,
  refusalOf,
  type ServerBuild,
  sanitizers,
  serverBuilds,
} from './builds.ts'
import { isForUser, RedisBuildError } from './errors.ts'
import { homeOf } from './home.ts'
import type { Job } from './job.ts'
import { createProgress } from './progress.ts'
import { selectionFrom } from './sources/select.ts'
import { type RunOptions, serverCommand } from './start-redis.ts'
import { users } from './users.ts'

const EXIT_FAILURE = 1
const EXIT_USAGE = 2

const interrupted = new AbortController()
export const job: Job = {
  home: homeOf(process.env),
  env: process.env,
  progress: createProgress(),
  signal: interrupted.signal,
}

// Arguments after the first `--` are for redis-server; commander would mix them with our own.
const separator = process.argv.indexOf('--')
const ownArguments = separator === -1 ? process.argv : process.argv.slice(0, separator)
const serverArguments = separator === -1 ? [] : process.argv.slice(separator + 1)

export const program = new Command('npm run redis --')
  .description('Downloads, verifies, patches, compiles and runs the Redis of Onetrip.')
  .addHelpText(
    'after',
    `
Builds:
  patched    the build that Onetrip uses: upstream, security fixes and our patches
  stock      upstream with security fixes
  baseline   stock with the O(N) search on close and the O(N) INFO of Redis 4
  tools      redis-cli and redis-benchmark, for all builds

  patched@0005 has only the patches of patched up to 0005, to measure patches separately.

Environment:
  ONETRIP_HOME   folder of sources, builds and data (default: .onetrip in the repository)
  REDIS_SOURCE   same as --source, for build and run
  REDIS_PATCHES  folder with patches and series, instead of apps/server-build/patches
  REDIS_SERVER   path of an installed redis-server; run starts it instead of a build

Examples:
  npm run redis -- build                              builds everything
  npm run redis -- run patched --port 6390
  npm run redis -- run stock -- --appendonly no       passes an argument to redis-server
  npm run redis -- build --source redis-8.0.6.tar.gz  builds without a network
  npm run redis -- users --secrets secrets            prints the users for another Redis`,
  )
  .showHelpAfterError('(use --help for usage)')
  .exitOverride()

program
  .command('build')
  .description('build what is missing or outdated, and print the paths')
  .addArgument(buildsArgument())
  .addOption(
    new Option('--source <file|url>', 'source archive to use')
      .env('REDIS_SOURCE')
      .conflicts('refresh'),
  )
  .option('--sha256 <hex>', 'SHA-256 of --source; needed if it is not a known release', sha256)
  .option('--refresh', 'look for a newer source')
  .addOption(sanitizerOption())
  .option('--tls', "with TLS, for tests; a separate build (needs OpenSSL's headers)")
  .action(async (builds: BuildName[], options: BuildOptions) => {
    const source = options.source || undefined // REDIS_SOURCE may be empty
    if (options.sha256 && !source) throw usage('--sha256 requires --source.')
    let { refresh = false } = options
    for (const build of builds.length > 0 ? builds : buildNames) {
      const { directory } = await ensureBuilt(job, build, { ...options, source, refresh })
      process.stdout.write(`${build}: ${directory}/bin\n`)
      refresh = false // once is enough
    }
  })

program
  .command('run')
  .description('run Redis in the foreground (this process executes redis-server)')
  .usage('[options] [build] [-- arguments for redis-server]')
  .addArgument(
    new Argument('[build]', 'build to run')
      .default('patched' satisfies ServerBuild)
      .choices(serverBuilds)
      .argParser(serverBuild),
  )
  .option('--port <n>', 'TCP port; 0: no TCP', integer(0, 65_535), 6390)
  .option('--bind <addresses>', 'addresses to listen on', '127.0.0.1')
  .option('--unixsocket <path>', 'also listen on a Unix socket')
  .option('--dir <path>', 'data directory (default: $ONETRIP_HOME/redis/data/<build>)')
  .option(
    '--secrets <folder>',
    'require a login as a user of users.acl; passwords are in this folder',
  )
  .option('--cluster', 'run a node of a cluster (cluster.conf); does not form the cluster')
  .addOption(
    new Option(
      '--io-threads <n>',
      'threads, including the main thread; 1: off (default: REDIS_IO_THREADS, else half of the cores, from 2 to 4)',
    ).argParser(integer(1, 128)),
  )
  .action(async (build: ServerBuild, options: RunOptions) => {
    const [first] = serverArguments
    if (first !== undefined && !first.startsWith('--')) {
      throw usage(
        `Arguments after -- must begin with a setting such as --appendonly, not '${first}'.`,
      )
    }
    const made = () => ensureBuilt(job, build, selectionFrom(process.env))
    const server = await serverCommand(job, made, { ...options, build }, serverArguments)
    stopListeningForSignals()
    process.execve?.(server.program, [server.program, ...server.args], process.env)
  })

program
  .command('users')
  .description('print the users of users.acl as lines of an ACL file, for a Redis of your own')
  .requiredOption('--secrets <folder>', 'folder of their passwords; missing ones are generated')
  .option('--cluster', 'for a node of a cluster: also the users of cluster.acl')
  .addHelpText(
    'after',
    `
Append the lines to the ACL file of your Redis (its setting aclfile) and run ACL LOAD, or execute each as a command:
ACL SETUSER and the words after "user". The first line turns off the default user: leave it out if others need it.
The API reads its password from the file SECRETS/api/redis-password (setting REDIS_PASSWORD_FILE).`,
  )
  .action(async ({ secrets, cluster }: { secrets: string; cluster?: boolean }) => {
    process.stdout.write(await users(resolve(secrets), cluster))
  })

program.hook('preAction', (_, command) => {
  if (serverArguments.length === 0 || command.name() === 'run') return
  throw usage(
    `'${command.name()}' takes no arguments after -- (got '${serverArguments.join(' ')}'). Only run does, for redis-server.`,
  )
})

function buildsArgument(): Argument {
  return new Argument('[builds...]', 'names of builds')
    .choices(buildNames)
    .default([], 'all')
    .argParser((name, before: BuildName[]) => [...before, buildName(name)])
}

function buildName(name: string): BuildName {
  return name === 'tools' || isServerBuild(name) ? name : refuseBuild(buildNames)
}

export function serverBuild(name: string): ServerBuild {
  return isServerBuild(name) ? name : refuseBuild(serverBuilds)
}

function refuseBuild(choices: readonly string[]): never {
  throw new InvalidArgumentError(refusalOf(choices))
}

export function sanitizerOption(): Option {
  const text = 'with a sanitizer, for tests; a separate build'
  return new Option('--sanitizer <name>', text).choices(sanitizers)
}

/** Returns a parser for whole numbers from `min` to `max`. */
export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (/^\d+$/.test(text) && value >= min && value <= max) return value
    throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}.`)
  }
}

function sha256(text: string): string {
  if (/^[0-9a-f]{64}$/i.test(text)) return text.toLowerCase()
  throw new InvalidArgumentError('Expected 64 hexadecimal digits.')
}

function usage(message: string): RedisBuildError {
  return new RedisBuildError('USAGE', message)
}

function onSignal(signal: NodeJS.Signals): void {
  interrupted.abort(signal)
}

function stopListeningForSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, onSignal)
}

/** Runs a command of this process. Ctrl-C aborts `job`; errors become messages and exit codes. */
export async function runCommandLine(command: Command): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal)

  try {
    await command.parseAsync(ownArguments)
  } catch (error) {
    process.exitCode = exitCodeFor(error)
  } finally {
    stopListeningForSignals()
  }
}

if (import.meta.main) await runCommandLine(program)

function exitCodeFor(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE
  if (interrupted.signal.aborted) {
    job.progress.note('Interrupted. No partial build was left behind.')
    // Ends by the signal itself, so that a shell sees the interrupt. Listeners of packages would prevent that.
    process.removeAllListeners(interrupted.signal.reason)
    process.kill(process.pid, interrupted.signal.reason)
    return EXIT_FAILURE
  }
  if (!isForUser(error)) throw error
  process.stderr.write(`\n${error.message}\n`)
  return error instanceof RedisBuildError && error.code === 'USAGE' ? EXIT_USAGE : EXIT_FAILURE
}
