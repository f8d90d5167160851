import { copyFile, mkdtemp, rm, symlink } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command, Option } from 'commander'
import { ensureBuilt, prepareTree } from '../src/build.ts'
import { programsOf, type ServerBuild, type Variant } from '../src/builds.ts'
import { integer, job, runCommandLine, sanitizerOption, serverBuild } from '../src/cli.ts'
import { plainEnvironment, runCommand, runLogged } from '../src/command.ts'
import { RedisBuildError } from '../src/errors.ts'
import { namesIn, readJson } from '../src/files.ts'
import { type InstalledBuild, programPath } from '../src/installed.ts'
import type { Job } from '../src/job.ts'
import { locked } from '../src/lock.ts'
import { patchesDirectory } from '../src/patches.ts'
import { timed } from '../src/progress.ts'
import { selectionFrom, selectSource } from '../src/sources/select.ts'

/** Upstream's test scripts by suite. */
const scripts = {
  main: './runtest',
  moduleapi: './runtest-moduleapi',
  cluster: './runtest-cluster',
  sentinel: './runtest-sentinel',
}
type Suite = keyof typeof scripts

interface UpstreamOptions extends Variant {
  build: ServerBuild
  suite: Suite
  /** 1: off. */
  ioThreads: number
}

/** A test that may fail. A name that ends with `*` stands for all names that begin like this. */
interface KnownFailure {
  test: string
  why: string
}

const knownFailures = fileURLToPath(new URL('../known-failures.json', import.meta.url))

/** Names of redis-server under which it is another program. */
const otherNames = ['redis-sentinel', 'redis-check-aof', 'redis-check-rdb']

/**
 * Runs a suite of upstream's tests on a build and prints the failures.
 *
 * @param more arguments for upstream's script.
 * @returns whether all failures are known (`known-failures.json`).
 */
async function testUpstream(
  job: Job,
  { build, suite, ioThreads, ...variant }: UpstreamOptions,
  more: readonly string[],
): Promise<boolean> {
  const selection = selectionFrom(job.env)
  const made = await ensureBuilt(job, build, { ...selection, ...variant })
  const tools = await ensureBuilt(job, 'tools', { ...selection, tls: variant.tls ?? false })
  const log = join(job.home.logs, `upstream-${build}-${suite}-${ioThreads}.log`)
  const directory = await mkdtemp(join(tmpdir(), 'onetrip-upstream-'))
  try {
    const tree = join(directory, 'redis')
    await prepareTests(job, tree, made, tools)
    if (variant.tls) await makeCertificates(job, tree)
    const hasClients = suite === 'main' || suite === 'moduleapi'
    const args = [
      // --durable: an exception fails its test only, and the run continues.
      ...(hasClients ? ['--durable', '--clients', String(availableParallelism())] : []),
      ...(variant.tls ? ['--tls'] : []),
      ...(ioThreads > 1 ? ['--config', 'io-threads', String(ioThreads)] : []),
      ...more,
    ]
    const text = `Running ${[scripts[suite], ...args].join(' ')}`
    const { output } = await timed(job.progress, text, () =>
      runLogged(log, scripts[suite], args, {
        cwd: tree,
        // Some tests use non-ASCII bytes, which Tcl decodes by the locale.
        env: plainEnvironment(job.env, { LC_ALL: 'C.UTF-8', TERM: 'dumb' }),
        signal: job.signal,
        onOutput: (text) => {
          for (const [line] of text.matchAll(PROGRESS)) job.progress.note(line)
        },
      }),
    )
    job.progress.note(`Full output: ${log}`)
    return report(failuresIn(output), (await readJson<KnownFailure[]>(knownFailures)) ?? [])
  } finally {
    await rm(directory, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Unpacks the source with upstream's tests, adds ours if the build has our patches, and adds the programs. */
async function prepareTests(
  job: Job,
  tree: string,
  made: InstalledBuild,
  tools: InstalledBuild,
): Promise<void> {
  const source = await locked(job, (job) => selectSource(job, {}))
  await prepareTree(job, source, [], tree)
  const ours = join(patchesDirectory(job.env), 'tests')
  for (const name of made.build === 'patched' ? await namesIn(ours) : []) {
    await copyFile(join(ours, name), join(tree, 'tests/unit', `onetrip-${name}`))
  }
  for (const build of [made, tools]) {
    for (const name of programsOf(build.build)) {
      await copyFile(programPath(build, name), join(tree, 'src', name))
    }
  }
  for (const name of otherNames) await symlink('redis-server', join(tree, 'src', name))
}

async function makeCertificates(job: Job, tree: string): Promise<void> {
  const options = { cwd: tree, env: plainEnvironment(job.env), signal: job.signal }
  const { code, stderr } = await timed(job.progress, 'Creating certificates', () =>
    runCommand('utils/gen-test-certs.sh', [], options),
  )
  if (code !== 0) throw new RedisBuildError('TOOLS_MISSING', `No certificates:\n${stderr}`)
}

/** Finished files and failures; in the suites cluster and sentinel, files that begin. */
const PROGRESS = /^(?:\[\d+\/\d+ done\]|Testing unit:|.*\[err\]|.*FAILED).*$/gm
const FAILED_TEST = /\[(?:err|exception|TIMEOUT)\]: (.+?)(?: in tests\/\S+\.tcl)?$/gm
/** In the suites cluster and sentinel. The test may have written other text into the line. */
const FAILED_INSTANCE_TEST = /^(?:[\d:]{8}> (.+): .*)?FAILED: (.*)$/gm
const END = /^ *(?:The End|GOOD! No errors\.|WARNING \d+ test\(s\) failed\.)$/m

/** The names of the failed tests in the output of a script. */
export function failuresIn(output: string): string[] {
  const names = new Set<string>() // runtest repeats them at the end
  for (const [, name = ''] of output.matchAll(FAILED_TEST)) names.add(name)
  for (const [, name, message = ''] of output.matchAll(FAILED_INSTANCE_TEST)) {
    names.add(name ?? message)
  }
  if (!END.test(output)) {
    names.add(`The script did not reach its end: ${output.trim().split('\n').at(-1)}`)
  }
  return [...names]
}

/** Prints the failures; returns whether all are known. */
export function report(failures: readonly string[], known: readonly KnownFailure[]): boolean {
  const reasonFor = (failure: string) =>
    known.find(({ test }) =>
      test.endsWith('*') ? failure.startsWith(test.slice(0, -1)) : failure === test,
    )?.why
  const found = failures.map((failure) => ({ failure, why: reasonFor(failure) }))
  const fresh = found.filter(({ why }) => why === undefined)
  const lines = [
    ...found.map(({ failure, why }) =>
      why === undefined ? `NEW FAILURE: ${failure}` : `known failure: ${failure} (${why})`,
    ),
    `${failures.length} failures, ${fresh.length} of them new`,
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
  return fresh.length === 0
}

const EXIT_FAILURE = 1

if (import.meta.main) {
  await runCommandLine(
    new Command('npm run test:upstream --')
      .description(
        "Runs upstream's tests on a build (needs Tcl). Other options are for upstream's script.",
      )
      .addOption(
        new Option('--build <name>', 'build to test')
          .default('patched' satisfies ServerBuild)
          .argParser(serverBuild),
      )
      .addOption(
        new Option('--suite <name>', "upstream's script: runtest, runtest-moduleapi and so on")
          .choices(Object.keys(scripts))
          .default('main' satisfies Suite),
      )
      .option('--io-threads <n>', '1 is off', integer(1, 128), 1)
      .addOption(sanitizerOption())
      .option('--tls', 'with TLS (needs OpenSSL and the TLS package of Tcl)')
      .allowUnknownOption()
      .allowExcessArguments()
      .exitOverride()
      .action(async (options: UpstreamOptions, command: Command) => {
        process.exitCode = (await testUpstream(job, options, command.args)) ? 0 : EXIT_FAILURE
      }),
  )
}
