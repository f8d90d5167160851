import { plainEnvironment } from '../command.ts'
import type { InstalledBuild } from '../installed.ts'
import type { Job } from '../job.ts'
import type { UpstreamOptions } from './options.ts'
import { comparisonOf, type Role, type RunRecord, roles, type Task } from './record.ts'
import { describe } from './report.ts'
import { runFile } from './run-file.ts'
import { isSameTask, runQueue } from './schedule.ts'
import {
  canShareTheMachine,
  commandFor,
  isOurs,
  type Ports,
  parse,
  type TestFile,
} from './suites.ts'
import { createTracker } from './tracker.ts'
import type { Workspace } from './workspace.ts'

export interface Plan {
  job: Job
  options: UpstreamOptions
  builds: Readonly<Record<Role, InstalledBuild>>
  workspace: Workspace
  files: readonly TestFile[]
  /** Runs that have ended; new runs are added. */
  runs: RunRecord[]
  /** Called after each run. */
  save(): Promise<void>
}

/** The default ports of upstream's runner. */
const PORTS: Ports = { first: 21_111, count: 8_000 }

/** A runner also uses a port below its first one, to talk to its clients. */
const PORTS_BELOW = 64

/**
 * Runs every file once on each build, then repeats files whose results differ.
 *
 * @returns false if the time budget ended before all runs.
 */
export async function runAll(plan: Plan): Promise<boolean> {
  const { files, options, runs, job } = plan
  const deadline = performance.now() + (options.budget ?? Number.POSITIVE_INFINITY) * 1_000
  const hasTime = () => performance.now() < deadline
  const pairs = options.ioThreads.flatMap((ioThreads) =>
    files.map((file) => ({ file: file.name, ioThreads })),
  )
  const round = (chosen: typeof pairs, attempt: number): Task[] =>
    chosen.flatMap((pair) => rolesFor(pair.file).map((role) => ({ ...pair, role, attempt })))

  const threads = options.ioThreads.join(' and ')
  job.progress.step(
    `Testing ${options.builds.join(' and ')}: ${files.length} files, I/O threads ${threads}`,
  )
  if (!(await runTasks(plan, round(pairs, 0), hasTime))) return false

  const first = runs.filter(({ attempt }) => attempt === 0)
  const different = pairs.filter(
    ({ file, ioThreads }) => comparisonOf(first, file, ioThreads)?.differences.length !== 0,
  )
  if (different.length === 0 || options.reruns === 0) return true
  job.progress.step(`Repeating ${different.length} files that differ, ${options.reruns} times`)
  const again = Array.from({ length: options.reruns }, (_, index) => round(different, index + 1))
  return await runTasks(plan, again.flat(), hasTime)
}

function rolesFor(file: string): readonly Role[] {
  return isOurs(file) ? ['candidate'] : roles
}

/** Runs the remaining tasks: first several files in parallel, then those that must run alone. */
async function runTasks(
  plan: Plan,
  tasks: readonly Task[],
  hasTime: () => boolean,
): Promise<boolean> {
  const { files, options, runs } = plan
  const hasRun = (task: Task) => runs.some((run) => isSameTask(run, task))
  const parts = [
    { workers: options.clients, files: files.filter(canShareTheMachine) },
    { workers: 1, files: files.filter((file) => !canShareTheMachine(file)) },
  ]
  for (const part of parts) {
    const own = tasks.filter(({ file }) => part.files.some(({ name }) => name === file))
    const left = own.filter((task) => !hasRun(task))
    if (left.length === 0) continue
    const trees = treesFor(plan)
    const tracker = createTracker({
      progress: plan.job.progress,
      names: { reference: options.builds[0], candidate: options.builds[1] },
      tasks: own,
      runs,
      workers: part.workers,
    })
    const work = async (task: Task, worker: number) => {
      const file = part.files.find(({ name }) => name === task.file)
      if (!file) return
      tracker.begin(task)
      const tree = await trees(task.role, worker)
      runs.push(await runTask(plan, file, task, tree, portsOf(worker, part.workers)))
      await plan.save()
      tracker.end(task)
      if (!options.onlyDifferences || differs(plan, task)) printResult(plan, own, task)
    }
    try {
      await runQueue(left, part.workers, work, hasTime)
    } finally {
      tracker.stop()
    }
  }
  return tasks.every(hasRun)
}

async function runTask(
  { builds, job, options }: Plan,
  file: TestFile,
  task: Task,
  tree: string,
  ports: Ports,
): Promise<RunRecord> {
  const startedAt = new Date().toISOString()
  const { output, timedOut, seconds } = await runFile(
    commandFor(file, { ioThreads: task.ioThreads, ports, tls: options.tls ?? false }),
    { tree, env: environment(job.env), limitSeconds: options.timeout, signal: job.signal },
  )
  const { tests, finished, reason } = parse(file, output)
  const why = timedOut ? `The file took longer than ${options.timeout} s.` : reason
  return {
    ...task,
    key: builds[task.role].key,
    ...(task.role === 'candidate' && file.sha256 !== undefined && { fileSha256: file.sha256 }),
    startedAt,
    seconds: Number(seconds.toFixed(1)),
    end: timedOut ? 'timed-out' : finished ? 'finished' : 'aborted',
    ...(why !== undefined && !(finished && !timedOut) && { reason: why }),
    tests,
  }
}

/** Some tests use non-ASCII bytes, which Tcl decodes by the locale. */
function environment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const utf8 = process.platform === 'darwin' ? 'en_US.UTF-8' : 'C.UTF-8'
  return plainEnvironment(env, { LC_ALL: utf8, TERM: 'dumb' })
}

/** Returns the tree of a worker for a build; creates it on first use. */
function treesFor({ workspace, builds }: Plan): (role: Role, worker: number) => Promise<string> {
  const trees = new Map<string, Promise<string>>()
  return (role, worker) => {
    const id = `${role} ${worker}`
    const tree = trees.get(id) ?? workspace.treeFor(builds[role])
    trees.set(id, tree)
    return tree
  }
}

function portsOf(worker: number, workers: number): Ports {
  const stride = Math.floor(PORTS.count / workers)
  return { first: PORTS.first + worker * stride, count: stride - PORTS_BELOW }
}

function differs({ runs }: Plan, { file, ioThreads }: Task): boolean {
  return comparisonOf(runs, file, ioThreads)?.differences.length !== 0
}

/** Prints a line about a file when all its runs have ended. */
function printResult({ runs, job }: Plan, tasks: readonly Task[], { file, ioThreads }: Task): void {
  const own = tasks.filter((task) => task.file === file && task.ioThreads === ioThreads)
  const records = own.map((task) => runs.find((run) => isSameTask(run, task)))
  const comparison = comparisonOf(runs, file, ioThreads)
  if (!comparison || records.includes(undefined)) return
  const seconds = records.map((record) => `${record?.seconds.toFixed(0)} s`)
  const times = own.every(({ attempt }) => attempt === 0) ? ` (${seconds.join(', ')})` : ''
  job.progress.note(`${file}, I/O threads ${ioThreads}: ${describe(comparison)}${times}`)
}
