import { mkdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { endOf, launch } from '@onetrip/stack/program.ts'
import { print, printError } from '@onetrip/stack/terminal.ts'
import { Command } from 'commander'
import type { Invocation } from '../command.ts'
import { commandLineOf } from '../command-line.ts'
import { generatorProgram } from '../drivers/redis/generator/program.ts'
import { requireBuild } from '../drivers/redis/server.ts'
import { build as buildClients, builds } from '../experiments/clients/builds.ts'
import { type GitState, gitState, published } from '../measure/machine.ts'
import { type PublishedRun, publishedRuns } from './runs.ts'

export const SUM_SECONDS = publishedRuns.reduce((sum, { seconds }) => sum + seconds, 0)

const minutes = (seconds: number) => `${Math.ceil(seconds / 60)} min`

/** `npm run load -- publish`: measures all published results. */
export function publishCommand({ interrupt }: Invocation): Command {
  const lines = publishedRuns.map(
    ({ name, args, seconds }) => `  ${String(seconds).padStart(4)} s  ${name.padEnd(17)}${args}`,
  )
  return new Command('publish')
    .description('measure all published results again, and write load/results')
    .addHelpText(
      'after',
      `
Runs these commands one after the other, ${minutes(SUM_SECONDS)} in all. Commit all changes first, and run nothing else meanwhile. After
an interrupt or a failure, the same command measures those that are missing or of another commit.

${lines.join('\n')}

Then update the figures in the documents: npm run load -- document`,
    )
    .action(async () => {
      const git = await gitState()
      await buildAll(interrupt)
      await publish(publishedRuns, { git, folder: published, signal: interrupt })
    })
}

/** Builds what the runs need, before the first of them. @throws Problem when a build fails, or a language is missing. */
async function buildAll(signal: AbortSignal): Promise<void> {
  for (const build of ['patched', 'stock', 'baseline', 'tools'] as const) {
    await requireBuild(build, signal)
  }
  await generatorProgram(signal)
  for (const runtime of ['go', 'rust', 'bun'] as const) {
    if ((await buildClients(runtime, signal)) === null) {
      throw new Problem(`The published results have clients in ${builds[runtime].label}.`)
    }
  }
}

interface PublishOptions {
  /** Of the working copy. */
  git: GitState | null
  /** Of the results. */
  folder: string
  signal: AbortSignal
  /** The program of `npm run load`. */
  program?: string
}

/**
 * Runs those commands whose results are missing, incomplete or of another commit. A failure does not keep the others
 * from being measured.
 *
 * @throws Problem before the first run when the working copy has changes; after the last one when one has failed; the
 *   reason of `signal`.
 */
export async function publish(runs: readonly PublishedRun[], options: PublishOptions) {
  const { git, folder, signal, program = join(repository, 'load/src/cli.ts') } = options
  if (git?.dirty !== false) {
    throw new Problem(
      'The working copy has changes, or is no Git repository. Published results belong to a commit: commit the changes (git status) first.',
    )
  }
  await mkdir(folder, { recursive: true })
  const planned = runs.map((run) => {
    const path = join(folder, `${run.name}.json`)
    const args = [...run.args.split(' '), '--no-report', '--json', relative(repository, path)]
    return { ...run, path, args }
  })
  const missing: typeof planned = []
  for (const run of planned) if (!(await isMeasured(run, git.commit))) missing.push(run)
  let left = missing.reduce((sum, { seconds }) => sum + seconds, 0)
  print(`${missing.length} of ${runs.length} results are to be measured: ${minutes(left)}.`)
  const failures: string[] = []
  for (const [index, { name, args, seconds }] of missing.entries()) {
    signal.throwIfAborted()
    const began = performance.now()
    print(`${index + 1} of ${missing.length}: ${name}, about ${seconds} s; ${minutes(left)} left`)
    const running = launch({
      name,
      command: process.execPath,
      args: [program, ...args],
      cwd: repository,
      env: Object.fromEntries(
        Object.entries(process.env).filter(([variable]) => !variable.startsWith('REDIS_')),
      ),
    })
    const stop = () => void running.stop(30_000)
    signal.addEventListener('abort', stop)
    const { code } = await running.exited
    signal.removeEventListener('abort', stop)
    signal.throwIfAborted()
    left -= seconds
    const took = `${((performance.now() - began) / 1_000).toFixed(0)} s`
    if (code === 0) print(`  done in ${took}`)
    else {
      printError(`  failed after ${took}`)
      failures.push(messageOf(await endOf(running)))
    }
  }
  if (failures.length === 0) return
  throw new Problem(
    `${failures.length} of ${missing.length} runs failed. The same command repeats them.\n${failures.join('\n')}`,
  )
}

/** Whether the result of a run is complete, and of this commit without changes. */
async function isMeasured(run: { path: string; args: readonly string[] }, commit: string) {
  const text = await readFile(run.path, 'utf8').catch(() => null)
  if (text === null) return false
  const { command, git, interrupted, failure } = JSON.parse(text)
  const isComplete = !interrupted && failure === undefined
  const isThis = command === commandLineOf('npm run load --', run.args)
  return isComplete && isThis && git?.commit === commit && git.dirty === false
}
