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
 * Seconds. The longest file, unit/memefficiency, takes 4 minutes, and 11 on a machine with five times as
 * much to do as cores; upstream's own limit is as long, without progress.
 */
const LONGEST_FILE = 1_200

export interface UpstreamOptions {
  /** The one that is the measure, and the one that is tested against it. */
  builds: [reference: ServerBuild, candidate: ServerBuild]
  suites: SuiteName[]
  /** Names of test files, `*` for any part of one between slashes; all without it. */
  files?: string[]
  ioThreads: number[]
  /** All connections with TLS, on builds that have it. */
  tls?: boolean
  /** Builds with this sanitizer; a report of it fails the test. */
  sanitizer?: Sanitizer
  /** Files at the same time. */
  clients: number
  /** Seconds that one file may take. */
  timeout: number
  /** How often a file that differs is run again on each build. */
  reruns: number
  /** Seconds after which no further file is begun. */
  budget?: number
  onlyDifferences?: boolean
  /** Where the result goes; in `$ONETRIP_HOME` without it. */
  json?: string
  resume?: boolean
}

/** The command's options and help, without its action. */
export function upstreamOptions(cores: number): Command {
  return new Command('test')
    .description("run upstream's own tests on two builds, and compare what passes (needs Tcl)")
    .addOption(
      new Option('--builds <reference,candidate>', 'the measure, and the build that is tested')
        .argParser(twoBuilds)
        .default(['stock', 'patched'] satisfies UpstreamOptions['builds'], 'stock,patched'),
    )
    .addOption(
      new Option('--suites <names>', `which of ${suiteNames.join(', ')}`)
        .argParser(suiteList)
        .default(['main', 'patches'] satisfies SuiteName[], 'main,patches'),
    )
    .option('--files <names>', 'only these, such as unit/auth,unit/type/* (default: all)', names)
    .addOption(
      new Option('--sanitizer <name>', 'on builds that check memory (address) or threads').choices(
        sanitizers,
      ),
    )
    .addOption(
      new Option('--io-threads <counts>', 'with each of these numbers of I/O threads; 1 is off')
        .argParser(threadCounts)
        .default([1, 2], '1,2'),
    )
    .option(
      '--tls',
      'all connections with TLS, on builds with it (needs OpenSSL, and Tcl with TLS)',
    )
    .addOption(
      new Option('--clients <n>', 'files tested at the same time; more is faster and flakier')
        .argParser(integer(1, 64))
        .default(Math.min(cores, 8), 'one per core, at most 8'),
    )
    .option('--timeout <seconds>', 'what one file may take', integer(1, 86_400), LONGEST_FILE)
    .option('--reruns <n>', 'how often a file that differs runs again', integer(0, 100), 5)
    .option('--budget <seconds>', 'begin no further file after this time', integer(1, 604_800))
    .option('--only-differences', 'do not list files whose results are the same')
    .option('--json <file>', 'where the result goes (default: in $ONETRIP_HOME/redis)')
    .option('--resume', 'keep the runs of these builds that the result file has already')
    .addHelpText(
      'after',
      `
Each file of tests runs on both builds, in turn, in a tree of its own under the folder for temporary
files. Results are compared by the tests' names. Upstream's tests fail now and then on any build: a file
whose results differ runs again on both, and a test is "worse" only if it fails again on the candidate
and never on the reference.

Suites:
  main      what ./runtest runs: about 100 files
  patches   the tests beside our patches, on the candidate only, if that is patched
  modules   what ./runtest-moduleapi runs; needs a C compiler
  cluster   ./runtest-cluster, one file at a time
  sentinel  ./runtest-sentinel, one file at a time

Ends with 0 when the candidate passes all that the reference passes, 1 when it does not, 3 when not
everything has run (--budget); --resume goes on from there, and after Ctrl-C.

Examples:
  npm run test:upstream                                          all of main, I/O threads off and on
  npm run test:upstream -- --files unit/auth,unit/networking     two files
  npm run test:upstream -- --files 'unit/cluster/*' --io-threads 1 --clients 1
  npm run test:upstream -- --tls --files unit/tls,unit/auth      with TLS
  npm run test:upstream -- --sanitizer address --timeout 3600    hours, several times slower
  npm run test:upstream -- --builds stock,stock                  how flaky are the tests themselves?
  npm run test:upstream -- --resume --only-differences           go on; list only what differs`,
    )
}

/**
 * The files that patterns mean, in the suite's order.
 *
 * @throws RedisBuildError (USAGE) for a pattern that means none.
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
        : `Names look like ${files[0]?.name}; --suites chooses among the suites.`
    throw new RedisBuildError('USAGE', `--files: there is no file of tests '${pattern}'. ${hint}`)
  }
  return files.filter(({ name }) => patterns.some((pattern) => matchesGlob(name, pattern)))
}

function names(text: string): string[] {
  const list = text.split(',').map((name) => name.trim().replace(/^tests\/|\.tcl$/g, ''))
  if (list.every((name) => name !== '')) return list
  throw new InvalidArgumentError('Names, separated by commas, are expected.')
}

function twoBuilds(text: string): UpstreamOptions['builds'] {
  const [reference, candidate, ...more] = names(text).map((name) =>
    isServerBuild(name) ? name : undefined,
  )
  if (reference && candidate && more.length === 0) return [reference, candidate]
  throw new InvalidArgumentError(
    `Two builds of ${serverBuilds.join(', ')} are expected, such as stock,patched or stock,patched@0005.`,
  )
}

function suiteList(text: string): SuiteName[] {
  const suites = names(text).map((name) => {
    const suite = suiteNames.find((known) => known === name)
    if (suite) return suite
    throw new InvalidArgumentError(`'${name}' is none of ${suiteNames.join(', ')}.`)
  })
  return [...new Set(suites)]
}

function threadCounts(text: string): number[] {
  return [...new Set(names(text).map(integer(1, 128)))]
}
