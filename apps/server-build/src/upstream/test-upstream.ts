import { mkdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { ensureBuilt } from '../build.ts'
import type { Job } from '../job.ts'
import { selectionFrom } from '../sources/select.ts'
import { chosenFiles, type UpstreamOptions } from './options.ts'
import {
  comparisonOf,
  earlierRuns,
  type FileComparison,
  newRecord,
  type RunRecord,
  recordSaver,
} from './record.ts'
import { count, report } from './report.ts'
import { runAll } from './rounds.ts'
import { filesOf } from './suites.ts'
import { createWorkspace, requireTcl } from './workspace.ts'

/** `incomplete`: some tests have not run, and no test is worse. */
export type Outcome = 'same' | 'worse' | 'incomplete'

/**
 * Runs upstream's tests on two builds, compares the results by test name and prints a report. Writes the result
 * file after each run.
 *
 * @throws RedisBuildError; the reason of `job.signal` after an interrupt. Leaves no process or temporary file
 *   behind; the result file has all runs that ended.
 */
export async function testUpstream(
  job: Job,
  options: UpstreamOptions,
  command: string,
): Promise<Outcome> {
  const { tls = false, sanitizer } = options
  await requireTcl(job.env, { tls })
  const [reference, candidate] = options.builds
  const forTools = { ...selectionFrom(job.env), tls }
  const wanted = { ...forTools, ...(sanitizer && { sanitizer }) }
  const builds = {
    reference: await ensureBuilt(job, reference, wanted),
    candidate: await ensureBuilt(job, candidate, wanted),
  }
  const tools = await ensureBuilt(job, 'tools', forTools)
  const kind = [tls ? '-tls' : '', sanitizer ? `-${sanitizer}` : ''].join('')
  const path = resolve(options.json ?? join(job.home.redis, `upstream-tests${kind}.json`))
  const record = newRecord(command, builds)
  if (options.resume) record.runs = await earlierRuns(path, record)
  await mkdir(dirname(path), { recursive: true })
  const save = recordSaver(path, record)
  const workspace = await createWorkspace(job, Object.values(builds), tools, {
    modules: options.suites.includes('modules'),
    tls,
  })
  try {
    const files = chosenFiles(
      await filesOf(
        {
          tree: candidate === 'patched' ? workspace.patched : workspace.upstream,
          upstream: workspace.upstream,
        },
        options.suites,
        job.signal,
      ),
      options.files,
    )
    const isCurrent = ({ role, file, fileSha256 }: RunRecord) =>
      role === 'reference' ||
      files.every(({ name, sha256 }) => name !== file || sha256 === fileSha256)
    record.runs = record.runs.filter(isCurrent)
    await save() // fails now, not after hours, if the file cannot be written
    record.complete = await runAll({
      job,
      options,
      builds,
      workspace,
      files,
      runs: record.runs,
      save,
    })
    const pairs = options.ioThreads.flatMap((threads) =>
      files.map(({ name }) => ({ threads, name })),
    )
    record.comparisons = pairs.flatMap(
      ({ name, threads }) => comparisonOf(record.runs, name, threads) ?? [],
    )
    await save()
    job.progress.end(true)
    process.stdout.write(`\n${report(record, record.comparisons)}\n\nAll results: ${path}\n`)
    return outcomeOf(record.comparisons, record.complete)
  } catch (error) {
    job.progress.end(false)
    if (job.signal.aborted) {
      job.progress.note(`Finished runs are in ${path}; continue with --resume.`)
    }
    throw error
  } finally {
    await workspace.remove()
  }
}

function outcomeOf(comparisons: readonly FileComparison[], complete: boolean): Outcome {
  if (count(comparisons, 'worse') > 0) return 'worse'
  return complete && count(comparisons, 'open') === 0 ? 'same' : 'incomplete'
}
