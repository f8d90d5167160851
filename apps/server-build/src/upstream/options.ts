import { matchesGlob } from 'node:path'
import { Command, InvalidArgumentError, Option } from 'commander'
import {
  isServerBuild,
  type Sanitizer,
  type ServerBuild,
  sanitizers,
  serverBuilds,
} from '../builds.ts'
import { RedisBuildError } from '../errors.ts'
import { integer } from '../options.ts'
import { type SuiteName, suiteNames, type TestFile } from './suites.ts'

/**
 * The default time limit per file. The longest file, unit/memefficiency, takes 4 minutes, and 11 on a machine
 * with a load of five per core. Upstream's own limit without progress is as long.
 */
const FILE_TIMEOUT_SECONDS = 1_200

export interface UpstreamOptions {
  /** The candidate is compared with the reference. */
  builds: [reference: ServerBuild, candidate: ServerBuild]
  suites: SuiteName[]
  /** Names of test files; `*` matches any characters except slashes. Default: all. */
  files?: string[]
  ioThreads: number[]
  /** Use TLS for all connections, on builds with TLS. */
  tls?: boolean
  /** Use builds with this sanitizer; its reports fail the test. */
  sanitizer?: Sanitizer
  /** Number of files that run in parallel. */
  clients: number
  /** Time limit per file, in seconds. */
  timeout: number
  /** Number of repetitions, on each build, of a file whose results differ. */
  reruns: number
  /** Seconds after which no further file is started. */
  budget?: number
  onlyDifferences?: boolean
  /** Path of the result file. Default: in `$ONETRIP_HOME`. */
  json?: string
  resume?: boolean
}

/** The options and the help of the command, without its action. */
export function upstreamOptions(cores: number): Command {
  return new Command('test')
    .description("run upstream's tests on two builds and compare the results (needs Tcl)")
    .addOption(
      new Option('--builds <reference,candidate>', 'two builds; the candidate is compared')
        .argParser(twoBuilds)
        .default(['stock', 'patched'] satisfies UpstreamOptions['builds'], 'stock,patched'),
    )
    .addOption(
      new Option('--suites <names>', `one or more of ${suiteNames.join(', ')}`)
        .argParser(suiteList)
        .default(['main', 'patches'] satisfies SuiteName[], 'main,patches'),
    )
    .option('--files <names>', 'only these, such as unit/auth,unit/type/* (default: all)', names)
    .addOption(
      new Option('--sanitizer <name>', 'use builds with this sanitizer').choices(sanitizers),
    )
    .addOption(
      new Option('--io-threads <counts>', 'numbers of I/O threads to test with; 1 is off')
        .argParser(threadCounts)
        .default([1, 2], '1,2'),
    )
    .option('--tls', 'use TLS for all connections (needs OpenSSL and the TLS package of Tcl)')
    .addOption(
      new Option('--clients <n>', 'files to run in parallel; more is faster, but flakier')
        .argParser(integer(1, 64))
        .default(Math.min(cores, 8), 'one per core, at most 8'),
    )
    .option('--timeout <seconds>', 'time limit per file', integer(1, 86_400), FILE_TIMEOUT_SECONDS)
    .option('--reruns <n>', 'repetitions of a file whose results differ', integer(0, 100), 5)
    .option('--budget <seconds>', 'start no further file after this time', integer(1, 604_800))
    .option('--only-differences', 'do not list files with equal results')
    .option('--json <file>', 'result file (default: in $ONETRIP_HOME/redis)')
    .option('--resume', 'continue with the runs of these builds in the result file')
    .addHelpText(
      'after',
      `
Each test file runs on both builds, in separate temporary folders. Results are compared by test name.
Upstream's tests fail now and then on any build, so a file whose results differ runs again on both. A
test is "worse" only if it fails again on the candidate and never on the reference.

Suites:
  main      the tests of ./runtest: about 100 files
  patches   the tests of our patches, on the candidate only, if it is patched
  modules   the tests of ./runtest-moduleapi; needs a C compiler
  cluster   ./runtest-cluster, one file at a time
  sentinel  ./runtest-sentinel, one file at a time

Exit codes: 0 if the candidate passes everything that the reference passes, 1 if not, 3 if some tests
have not run (--budget). --resume continues such a run, also after Ctrl-C.

Examples:
  npm run test:upstream                                          main and patches, I/O threads off and on
  npm run test:upstream -- --files unit/auth,unit/networking     two files
  npm run test:upstream -- --files 'unit/cluster/*' --io-threads 1 --clients 1
  npm run test:upstream -- --tls --files unit/tls,unit/auth      with TLS
  npm run test:upstream -- --sanitizer address --timeout 3600    with the address sanitizer
  npm run test:upstream -- --builds stock,stock                  shows how flaky the tests are
  npm run test:upstream -- --resume --only-differences           continues; lists only differences`,
    )
}

/**
 * The files that match the patterns, in the order of the suite.
 *
 * @throws RedisBuildError (USAGE) for a pattern that matches no file.
 */
export function chosenFiles(
  files: readonly TestFile[],
  patterns: readonly string[] | undefined,
): TestFile[] {
  if (patterns === undefined) return [...files]
  for (const pattern of patterns) {
    if (files.some(({ name }) => matchesGlob(name, pattern))) continue
    const last = pattern.split('/').at(-1) ?? pattern
    const similar = files.filter(({ name }) => name.includes(last)).slice(0, 5)
    const hint =
      similar.length > 0
        ? `Did you mean ${similar.map(({ name }) => name).join(', ')}?`
        : `Names look like ${files[0]?.name}; --suites selects the suites.`
    throw new RedisBuildError('USAGE', `--files: no test file matches '${pattern}'. ${hint}`)
  }
  return files.filter(({ name }) => patterns.some((pattern) => matchesGlob(name, pattern)))
}

function names(text: string): string[] {
  const list = text.split(',').map((name) => name.trim().replace(/^tests\/|\.tcl$/g, ''))
  if (list.every((name) => name !== '')) return list
  throw new InvalidArgumentError('Expected names, separated by commas.')
}

function twoBuilds(text: string): UpstreamOptions['builds'] {
  const [reference, candidate, ...more] = names(text).map((name) =>
    isServerBuild(name) ? name : undefined,
  )
  if (reference && candidate && more.length === 0) return [reference, candidate]
  throw new InvalidArgumentError(
    `Expected two builds of ${serverBuilds.join(', ')}, such as stock,patched or stock,patched@0005.`,
  )
}

function suiteList(text: string): SuiteName[] {
  const suites = names(text).map((name) => {
    const suite = suiteNames.find((known) => known === name)
    if (suite) return suite
    throw new InvalidArgumentError(`'${name}' is not one of ${suiteNames.join(', ')}.`)
  })
  return [...new Set(suites)]
}

function threadCounts(text: string): number[] {
  return [...new Set(names(text).map(integer(1, 128)))]
}
