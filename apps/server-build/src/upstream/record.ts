import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { cpus, release, totalmem, type } from 'node:os'
import { RedisBuildError } from '../errors.ts'
import type { InstalledBuild } from '../installed.ts'
import { type Comparison, compare, endOfFile, type Results } from './compare.ts'
import type { TestResult, TestStatus } from './output.ts'
import { isOurs } from './suites.ts'

/** The build that is the measure, and the one that is tested against it. */
export const roles = ['reference', 'candidate'] as const
export type Role = (typeof roles)[number]

/** What to run: a file of tests on a build. */
export interface Task {
  file: string
  ioThreads: number
  role: Role
  /** 0, then 1 and so on for repetitions. */
  attempt: number
}

/** One run of one file. */
export interface RunRecord extends Task {
  /** The build's key. */
  key: string
  /** Of a file that is not as upstream has it. */
  fileSha256?: string
  startedAt: string
  seconds: number
  /** `aborted`: something ended the suite before the end of the file; `timed-out`: that was we. */
  end: 'finished' | 'aborted' | 'timed-out'
  /** Why it did not finish. */
  reason?: string
  tests: TestResult[]
}

interface BuildIdentity {
  build: string
  key: string
  redisVersion: string
  /** In words; with Debian's revision, if its patches are in. */
  source: string
  archiveSha256: string
  debianPatches: string[]
  patches: string[]
  patchesSha256: string
  compilers: InstalledBuild['inputs']['compilers']
}

/** A comparison of one file with a number of I/O threads. */
export interface FileComparison extends Comparison {
  file: string
  ioThreads: number
}

/** What goes into the result file. */
export interface ResultRecord {
  format: 1
  /** Whether everything that was asked for has run. */
  complete: boolean
  command: string
  updatedAt: string
  machine: { cpu: string; cores: number; memoryBytes: number; kernel: string; node: string }
  builds: Record<Role, BuildIdentity>
  comparisons: FileComparison[]
  runs: RunRecord[]
}

export function newRecord(
  command: string,
  builds: Readonly<Record<Role, InstalledBuild>>,
): ResultRecord {
  const cores = cpus()
  return {
    format: 1,
    complete: false,
    command,
    updatedAt: new Date().toISOString(),
    machine: {
      cpu: cores[0]?.model.trim() || 'unknown',
      cores: cores.length,
      memoryBytes: totalmem(),
      kernel: `${type()} ${release()}`,
      node: process.version,
    },
    builds: { reference: identityOf(builds.reference), candidate: identityOf(builds.candidate) },
    comparisons: [],
    runs: [],
  }
}

function identityOf(build: InstalledBuild): BuildIdentity {
  return {
    build: build.build,
    key: build.key,
    redisVersion: build.redisVersion,
    source: build.source.from,
    archiveSha256: build.inputs.archive,
    debianPatches: build.debianPatches,
    patches: build.patches,
    patchesSha256: build.inputs.patches,
    compilers: build.inputs.compilers,
  }
}

/**
 * The runs in a result file that are of these builds, as they are now.
 *
 * @returns none when there is no such file.
 * @throws RedisBuildError (USAGE) when it is something else.
 */
export async function earlierRuns(
  path: string,
  { builds }: Pick<ResultRecord, 'builds'>,
): Promise<RunRecord[]> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
  const runs = runsIn(text)
  if (runs) return runs.filter(({ role, key }) => builds[role]?.key === key)
  throw new RedisBuildError(
    'USAGE',
    `${path} is no result of these tests: remove it, or name another.`,
  )
}

function runsIn(text: string): RunRecord[] | undefined {
  try {
    const { format, runs }: Partial<ResultRecord> = JSON.parse(text)
    return format === 1 && Array.isArray(runs) ? runs : undefined
  } catch {
    return undefined
  }
}

/**
 * Writes the result as it is at each call, one time after the other, and in a way that there is never half
 * a file.
 */
export function recordSaver(path: string, record: ResultRecord): () => Promise<void> {
  const draft = `${path}.${process.pid}.tmp`
  const write = async () => {
    record.updatedAt = new Date().toISOString()
    try {
      await writeFile(draft, `${JSON.stringify(record)}\n`)
      await rename(draft, path)
    } catch (error) {
      await rm(draft, { force: true })
      throw error
    }
  }
  let before = Promise.resolve()
  return () => {
    before = before.then(write)
    return before
  }
}

/**
 * Compares the first runs of a file, and with them the repetitions. What our own tests are compared with
 * is that they pass.
 *
 * @returns undefined if a first run is missing.
 */
export function comparisonOf(
  runs: readonly RunRecord[],
  file: string,
  ioThreads: number,
): FileComparison | undefined {
  const resultsOf = (wanted: Role) =>
    runs
      .filter((run) => run.file === file && run.ioThreads === ioThreads && run.role === wanted)
      .toSorted((one, other) => one.attempt - other.attempt)
      .map(resultsOfRun)
  const candidate = resultsOf('candidate')
  const reference = isOurs(file) ? candidate.map(asTheyShouldBe) : resultsOf('reference')
  if (reference.length === 0 || candidate.length === 0) return undefined
  return { file, ioThreads, ...compare(reference, candidate) }
}

function asTheyShouldBe(results: Results): Results {
  const good = (status: TestStatus) => (status === 'failed' ? 'passed' : status)
  return new Map([...results].map(([name, status]) => [name, good(status)]))
}

function resultsOfRun({ tests, end }: RunRecord): Results {
  const results = tests.map(({ name, status }) => [name, status] as const)
  return new Map([...results, [endOfFile, end === 'finished' ? 'passed' : 'failed']])
}
