import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { type BuildOptions, ensureBuilt } from './build.ts'
import {
  type BuildName,
  buildNames,
  isServerBuild,
  type ServerBuild,
  sanitizers,
  serverBuilds,
} from './builds.ts'
import { clean } from './clean.ts'
import { RedisBuildError } from './errors.ts'
import { homeOf } from './home.ts'
import type { Job } from './job.ts'
import { integer } from './options.ts'
import { createProgress } from './progress.ts'
import { type RunOptions, serverCommand } from './run.ts'
import { describe, statusOf } from './status.ts'
import { upstreamCommand } from './upstream/command.ts'

const EXIT_FAILURE = 1
const EXIT_USAGE = 2

const interrupted = new AbortController()
const job: Job = {
  home: homeOf(process.env),
  env: process.env,
  progress: createProgress(process.env),
  signal: interrupted.signal,
}

// What follows the first `--` is for redis-server; commander would mix it with our own arguments.
const separator = process.argv.indexOf('--')
const ownArguments = separator === -1 ? process.argv : process.argv.slice(0, separator)
const serverArguments = separator === -1 ? [] : process.argv.slice(separator + 1)

const program = new Command('npm run redis --')
  .description('Fetches, verifies, patches, compiles and runs the Redis of Onetrip.')
  .addHelpText(
    'after',
    `
Builds:
  patched    what Onetrip runs on: upstream, its security fixes, and our patches
  stock      upstream with its security fixes
  baseline   stock with the O(N) search on close and O(N) INFO that Redis had before version 5
  tools      redis-cli and redis-benchmark, for all of them

  patched@0005 is patched with its patches up to 0005, to measure each patch by itself.

Environment:
  ONETRIP_HOME   where sources, builds and data are kept (default: .onetrip in the repository)
  REDIS_SOURCE   as --source, for build and run
  REDIS_PATCHES  a folder with other patches and series than apps/server-build/patches
  REDIS_SERVER   run starts this installed redis-server instead of a build

Examples:
  npm run redis -- build                              all builds
  npm run redis -- run patched --port 6390
  npm run redis -- run stock -- --appendonly no       with an argument for redis-server
  npm run redis -- build --source redis-8.0.6.tar.gz  without a network`,
  )
  .showHelpAfterError('(add --help for what there is)')
  .exitOverride()

program
  .command('build')
  .description('make builds that are missing or outdated, and print where they are')
  .addArgument(buildsArgument())
  .addOption(
    new Option('--source <file|url>', 'archive of the source, instead of fetching it')
      .env('REDIS_SOURCE')
      .conflicts(['suite', 'refresh']),
  )
  .option('--sha256 <hex>', 'SHA-256 of --source, if it is not that of a known release', sha256)
  .option('--suite <name>', "only this suite of Debian's, such as trixie")
  .option('--refresh', 'ask again for the newest source, although there is one')
  .option('--jobs <n>', 'compilers at the same time (default: one per core)', integer(1, 1024))
  .addOption(
    new Option('--sanitizer <name>', 'for tests: checks memory (address) or threads').choices(
      sanitizers,
    ),
  )
  .option('--tls', "with TLS (needs OpenSSL's headers); beside the one without, for tests")
  .action(async (builds: BuildName[], options: BuildOptions) => {
    const source = options.source || undefined // REDIS_SOURCE may be there and empty
    if (options.sha256 && !source) throw usage('--sha256 goes with --source.')
    let { refresh = false } = options
    for (const build of builds.length > 0 ? builds : buildNames) {
      const { directory } = await ensureBuilt(job, build, { ...options, source, refresh })
      process.stdout.write(`${build}: ${directory}/bin\n`)
      refresh = false // the first build has asked
    }
  })

program
  .command('run')
  .description('run Redis in the foreground; this process becomes redis-server')
  .usage('[options] [build] [-- arguments for redis-server]')
  .addArgument(
    new Argument('[build]', 'which one')
      .default('patched' satisfies ServerBuild)
      .choices(serverBuilds)
      .argParser((name) => (isServerBuild(name) ? name : refuseBuild(serverBuilds))),
  )
  .option('--port <n>', 'TCP port; 0 for none', integer(0, 65_535), 6390)
  .option('--bind <addresses>', 'where to listen', '127.0.0.1')
  .option('--unixsocket <path>', 'listen on a Unix socket, too')
  .option('--dir <path>', 'data directory (default: $ONETRIP_HOME/redis/data/<build>)')
  .option('--secrets <folder>', 'only the users of users.acl, with the passwords that are there')
  .option('--cluster', 'as a node of a cluster, which something else forms: cluster.conf')
  .addOption(
    new Option('--io-threads <n>', 'default: half of the cores, 3 to 8; 1 (off) below four cores')
      .env('REDIS_IO_THREADS')
      .argParser(integer(1, 128)),
  )
  .action(async (build: ServerBuild, options: RunOptions) => {
    const [first] = serverArguments
    if (first !== undefined && !first.startsWith('--')) {
      throw usage(`What follows -- must begin with a setting such as --appendonly, not '${first}'.`)
    }
    const server = await serverCommand(job, build, options, serverArguments)
    stopListeningForSignals()
    process.execve?.(server.program, [server.program, ...server.args], process.env)
  })

program
  .command('status')
  .description('tell which builds there are, of what, and where')
  .addArgument(buildsArgument())
  .option('--json', 'for programs')
  .action(async (builds: BuildName[], { json }: { json?: boolean }) => {
    const wanted = builds.length > 0 ? builds : buildNames
    const states = await statusOf(job.home, wanted, job.env)
    const text = json ? JSON.stringify(states, null, 2) : states.map(describe).join('\n\n')
    process.stdout.write(`${text}\n`)
  })

program
  .command('clean')
  .description('remove builds; without a name all of them and the cached sources (never data)')
  .addArgument(buildsArgument())
  .action(async (builds: BuildName[]) => {
    const removed = await clean(job, builds)
    const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`
    for (const { path, bytes } of removed) {
      process.stdout.write(`removed ${path} (${megabytes(bytes)})\n`)
    }
    const total = removed.reduce((sum, { bytes }) => sum + bytes, 0)
    process.stdout.write(removed.length > 0 ? `${megabytes(total)} freed\n` : 'nothing to remove\n')
  })

program.addCommand(upstreamCommand(job))

program.hook('preAction', (_, command) => {
  if (serverArguments.length === 0 || command.name() === 'run') return
  throw usage(
    `'${command.name()}' takes nothing after -- (there is '${serverArguments.join(' ')}'): only run does, for redis-server.`,
  )
})

function buildsArgument(): Argument {
  return new Argument('[builds...]', 'which ones')
    .choices(buildNames)
    .default([], 'all')
    .argParser((name, before: BuildName[]) => [...before, buildName(name)])
}

function buildName(name: string): BuildName {
  return name === 'tools' || isServerBuild(name) ? name : refuseBuild(buildNames)
}

function refuseBuild(choices: readonly string[]): never {
  throw new InvalidArgumentError(
    `Allowed choices are ${choices.join(', ')}. patched@0005 is patched with its patches up to 0005.`,
  )
}

function sha256(text: string): string {
  if (/^[0-9a-f]{64}$/i.test(text)) return text.toLowerCase()
  throw new InvalidArgumentError('64 hexadecimal digits are expected.')
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

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal)

try {
  await program.parseAsync(ownArguments)
} catch (error) {
  process.exitCode = exitCodeFor(error)
} finally {
  stopListeningForSignals()
}

function exitCodeFor(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE
  if (interrupted.signal.aborted) {
    job.progress.end(false)
    process.stderr.write('Interrupted; nothing unfinished was left behind.\n')
    // To end by the signal itself is what tells a shell that it was one. Packages that we use have
    // listeners, too, each of which leaves it to the others.
    process.removeAllListeners(interrupted.signal.reason)
    process.kill(process.pid, interrupted.signal.reason)
    return EXIT_FAILURE
  }
  if (error instanceof RedisBuildError) {
    process.stderr.write(`\n${error.message}\n`)
    return error.code === 'USAGE' ? EXIT_USAGE : EXIT_FAILURE
  }
  if (error instanceof Error && 'syscall' in error) {
    process.stderr.write(`\n${error.message}\n`) // such as a folder that may not be written
    return EXIT_FAILURE
  }
  throw error
}
