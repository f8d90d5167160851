import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { runCommand } from '../command.ts'
import { RedisBuildError } from '../errors.ts'
import { namesIn, sha256OfFile } from '../files.ts'
import { parseInstances, parseRuntest, type SuiteOutput } from './output.ts'

/** Upstream's suites, and `patches`: the tests of our patches, which run in upstream's main suite. */
export const suiteNames = ['main', 'patches', 'modules', 'cluster', 'sentinel'] as const
export type SuiteName = (typeof suiteNames)[number]

/** A test file. */
export interface TestFile {
  suite: SuiteName
  /** Upstream's name (`unit/auth`); with the prefix `cluster/` or `sentinel/` in these suites. */
  name: string
  /** Only for files that differ from upstream: they may change without a change of the builds. */
  sha256?: string
}

/** The ports for the servers of a run: `count` ports from `first` on, and the same 10,000 higher. */
export interface Ports {
  first: number
  count: number
}

/** The folder of our patches' tests in a tree. */
export const ourFolder = 'unit/onetrip'

/** Whether a file is one of ours: its tests must pass on the candidate and do not run on the reference. */
export function isOurs(name: string): boolean {
  return name.startsWith(`${ourFolder}/`)
}

interface Suite {
  runner: string
  list(tree: string, signal: AbortSignal): Promise<string[]>
  /** Whether files can run in parallel, because the ports can be set. */
  parallel: boolean
  parse(output: string): SuiteOutput
}

const suites: Record<SuiteName, Suite> = {
  main: { runner: 'runtest', list: mainFiles, parallel: true, parse: parseRuntest },
  patches: { runner: 'runtest', list: ourFiles, parallel: true, parse: parseRuntest },
  modules: { runner: 'runtest', list: moduleFiles, parallel: true, parse: parseRuntest },
  cluster: instances('cluster'),
  sentinel: instances('sentinel'),
}

function instances(name: 'cluster' | 'sentinel'): Suite {
  return {
    runner: `runtest-${name}`,
    list: async (tree) =>
      (await tclFiles(join(tree, 'tests', name, 'tests'))).map((file) => `${name}/${file}`),
    parallel: false,
    parse: parseInstances,
  }
}

/**
 * The files of suites, in upstream's order.
 *
 * @param upstream a tree with upstream's tests; files of `tree` that differ get a hash.
 */
export async function filesOf(
  { tree, upstream }: { tree: string; upstream: string },
  names: readonly SuiteName[],
  signal: AbortSignal,
): Promise<TestFile[]> {
  const lists = await Promise.all(
    names.map(async (suite) => {
      const files = await suites[suite].list(tree, signal)
      return await Promise.all(
        files.map(async (name): Promise<TestFile> => {
          const [sha256, original] = await Promise.all(
            [tree, upstream].map((root) => hashOf(root, { suite, name })),
          )
          return { suite, name, ...(sha256 && sha256 !== original && { sha256 }) }
        }),
      )
    }),
  )
  return lists.flat()
}

export function canShareTheMachine({ suite }: TestFile): boolean {
  return suites[suite].parallel
}

export function parse({ suite }: TestFile, output: string): SuiteOutput {
  return suites[suite].parse(output)
}

/** The command that runs one file; its working directory must be the tree. */
export function commandFor(
  { suite, name }: TestFile,
  { ioThreads, ports, tls = false }: { ioThreads: number; ports: Ports; tls?: boolean },
): [program: string, ...args: string[]] {
  const { runner, parallel } = suites[suite]
  const single = parallel ? name : basename(name)
  return [
    `./${runner}`,
    ...['--single', single],
    // A client runs one file at a time.
    ...(parallel ? ['--clients', '1', ...portArguments(ports)] : []),
    ...(tls ? ['--tls'] : []),
    ...(ioThreads > 1 ? ['--config', 'io-threads', String(ioThreads)] : []),
  ]
}

function portArguments({ first, count }: Ports): string[] {
  return ['--baseport', String(first), '--portcount', String(count)]
}

async function mainFiles(tree: string, signal: AbortSignal): Promise<string[]> {
  const { code, stdout, stderr } = await runCommand('./runtest', ['--list-tests'], {
    cwd: tree,
    signal,
  })
  const names = stdout.split('\n').filter((line) => /^\S+\/\S+$/.test(line))
  if (code === 0 && names.length > 0) return names
  throw new RedisBuildError(
    'TOOLS_MISSING',
    `Upstream's ./runtest --list-tests does not list any tests:\n${stdout}${stderr}`,
  )
}

async function ourFiles(tree: string): Promise<string[]> {
  return (await tclFiles(join(tree, 'tests', ourFolder))).map((name) => `${ourFolder}/${name}`)
}

async function hashOf(tree: string, { suite, name }: TestFile): Promise<string | undefined> {
  const path = suites[suite].parallel ? name : `${dirname(name)}/tests/${basename(name)}`
  return await sha256OfFile(join(tree, 'tests', `${path}.tcl`)).catch(() => undefined)
}

async function moduleFiles(tree: string): Promise<string[]> {
  const script = await readFile(join(tree, 'runtest-moduleapi'), 'utf8')
  return [...script.matchAll(/^--single (\S+)/gm)].flatMap(([, name]) => name ?? [])
}

async function tclFiles(directory: string): Promise<string[]> {
  const names = (await namesIn(directory)).filter((name) => name.endsWith('.tcl'))
  return names.map((name) => basename(name, '.tcl'))
}
