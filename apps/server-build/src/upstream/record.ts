import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { cpus, release, totalmem, type } from 'node:os'
import { RedisBuildError } from '../errors.ts'
import type { InstalledBuild } from '../installed.ts'
import { type Comparison, compare, endOfFile, type Results } from './compare.ts'
import type { TestResult, TestStatus } from './output.ts'
import { isOurs } from './suites.ts'

/** The candidate is compared with the reference. */
export const roles = ['reference', 'candidate'] as const
export type Role = (typeof roles)[number]

/** One run of a test file on a build. */
export interface Task {
  file: string
  ioThreads: number
  role: Role
  /** 0 for the first run, 1 and so on for repetitions. */
  attempt: number
}

/** A run that has ended. */
export interface RunRecord extends Task {
  /** The build's key. */
  key: string
  /** Only for files that differ from upstream. */
  fileSha256?: string
  startedAt: string
  seconds: number
  /** `aborted`: the suite stopped before the end of the file; `timed-out`: we stopped the suite. */
  end: 'finished' | 'aborted' | 'timed-out'
  /** Why the run did not finish. */
  reason?: string
  tests: TestResult[]
}

interface BuildIdentity {
  build: string
  key: string
  redisVersion: string
  /** For people; includes Debian's revision if Debian's patches are applied. */
  source: string
  archiveSha256: string
  debianPatches: string[]
  patches: string[]
  patchesSha256: string
  compilers: InstalledBuild['inputs']['compilers']
}

/** The comparison of one file with one number of I/O threads. */
export interface FileComparison extends Comparison {
  file: string
  ioThreads: number
}

/** The content of the result file. */
export interface ResultRecord {
  format: 1
  /** Whether all requested tests have run. */
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
 * The runs in a result file with the same builds (same keys).
 *
 * @returns an empty list if the file does not exist.
 * @throws RedisBuildError (USAGE) if the file is not a result file.
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
    `${path} is not a result of these tests. Remove it, or choose another file with --json.`,
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
 * Returns a function that writes the current record to a file. Calls are queued; the file is replaced
 * atomically.
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
 * Compares the runs of a file on both builds. Our own tests have no reference: they are expected to pass.
 *
 * @returns undefined if a build has no run of the file.
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
  const reference = isOurs(file) ? candidate.map(asExpected) : resultsOf('reference')
  if (reference.length === 0 || candidate.length === 0) return undefined
  return { file, ioThreads, ...compare(reference, candidate) }
}

function asExpected(results: Results): Results {
  const good = (status: TestStatus) => (status === 'failed' ? 'passed' : status)
  return new Map([...results].map(([name, status]) => [name, good(status)]))
}

function resultsOfRun({ tests, end }: RunRecord): Results {
  const results = tests.map(({ name, status }) => [name, status] as const)
  return new Map([...results, [endOfFile, end === 'finished' ? 'passed' : 'failed']])
}
