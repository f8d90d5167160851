import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { listOf } from '@onetrip/stack/parsers.ts'
import { places } from '@onetrip/stack/places.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { endWithThisProcess } from '@onetrip/stack/program.ts'
import { print } from '@onetrip/stack/terminal.ts'
import { Command, Option } from 'commander'
import type { Invocation } from './command.ts'
import type { Experiment, Preset } from './experiment/experiment.ts'
import { experiments } from './experiments.ts'
import { readResult, type SavedResult } from './reporting/files.ts'
import {
  addOutputs,
  type OutputFlags,
  prepareOutputs,
  requireCommitted,
} from './reporting/outputs.ts'

type AllOptions = OutputFlags & { quick?: boolean; full?: boolean; only?: string[] }

/** `npm run load -- all`: runs the experiments one after the other and makes one report. */
export function allCommand(invocation: Invocation): Command {
  const names = experiments.map(({ name }) => name)
  const command = new Command('all')
    .description('run most experiments and make one report')
    .addOption(new Option('--quick', 'short runs of most experiments').conflicts('full'))
    .addOption(new Option('--full', 'more experiments, with more cases and longer runs'))
    .addOption(new Option('--only <list>', `any of ${names.join(', ')}`).argParser(listOf(names)))
  addOutputs(command, '--json <folder>', 'write one result file for each experiment to this folder')
  return command
    .addHelpText(
      'after',
      `
Each experiment runs in its own process. If one fails, the others still run. Ctrl-C stops all of them and keeps
the complete rounds. It takes about ${timeOf('quick')} with --quick, ${timeOf('usual')} by default, and ${timeOf('full')} with --full.

These run only if --only names them, because they take long or need much memory: ${onlyByName.join(', ')}.

Examples:
  npm run load -- all --quick --html report.html
  npm run load -- all --full --json load/results
  npm run load -- all --only http,store`,
    )
    .action(() => runAll(command.opts<AllOptions>(), invocation))
}

/** The experiments that no preset includes. */
const onlyByName = experiments
  .filter(({ seconds }) => Object.values(seconds).every((each) => each === null))
  .map(({ name }) => name)

/** The experiments that run without `--only`. */
const defaultsOf = (preset: Preset) => experiments.filter(({ seconds }) => seconds[preset] !== null)

/**
 * @throws Problem when an experiment failed, after the results of the others are written; the reason of the
 *   interrupt when there is no result.
 */
async function runAll(options: AllOptions, { interrupt }: Invocation): Promise<void> {
  const { quick, full, only, json, ...outputs } = options
  const preset = quick ? 'quick' : full ? 'full' : 'usual'
  const chosen = only ? experiments.filter(({ name }) => only.includes(name)) : defaultsOf(preset)
  const folder = resolve(json ?? join(dirname(places().report), 'results'))
  await requireCommitted(folder)
  await mkdir(folder, { recursive: true }).catch((error: unknown) => {
    throw new Problem(`${folder} cannot be written: ${messageOf(error)}.`)
  })
  const save = await prepareOutputs(outputs)
  const results: SavedResult[] = []
  const failed: string[] = []
  const startedAt = new Date().toISOString()
  for (const [index, experiment] of chosen.entries()) {
    if (interrupt.aborted) break
    const left = `${timeOf(preset, [experiment])}; ${timeOf(preset, chosen.slice(index))} to the end`
    const about = onlyByName.includes(experiment.name) ? '' : `: about ${left}`
    if (index > 0) print('\n')
    print(`[${index + 1}/${chosen.length}] ${experiment.name}${about}\n`)
    const file = join(folder, `${experiment.name}.json`)
    const code = await runOne(experiment, preset, file)
    const saved = await readResult(file).catch(() => null)
    const isNew = saved !== null && saved.result.date >= startedAt
    if (isNew) results.push(saved)
    if ((code !== 0 || !isNew) && !interrupt.aborted) failed.push(experiment.name)
  }
  if (results.length === 0) {
    interrupt.throwIfAborted()
    throw new Problem('No experiment has a result. The errors are above.')
  }
  const problem = `These experiments failed: ${failed.join(', ')}.`
  await save(results, failed.length > 0 ? [problem] : [])
  print(`\nThe results are in ${folder}`)
  if (failed.length > 0) throw new Problem(`${problem} The errors are above.`)
}

const cli = fileURLToPath(new URL('cli.ts', import.meta.url))
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Runs an experiment in its own process and forwards signals to it. */
async function runOne(
  experiment: Experiment,
  preset: Preset,
  file: string,
): Promise<number | null> {
  const flags = preset === 'quick' || (preset === 'full' && experiment.full) ? [`--${preset}`] : []
  // The result names its command, which works in other checkouts with a relative path.
  const args = [cli, experiment.name, ...flags, '--json', relative('', file), '--no-report']
  const child = spawn(process.execPath, [...process.execArgv, ...args], { stdio: 'inherit' })
  endWithThisProcess(child)
  const pass = (signal: NodeJS.Signals) => void child.kill(signal)
  for (const signal of signals) process.on(signal, pass)
  const [code] = await once(child, 'exit')
  for (const signal of signals) process.off(signal, pass)
  return code
}

/** The total time of experiments, about: `45 s`, `2 minutes`. */
function timeOf(preset: Preset, chosen: readonly Experiment[] = defaultsOf(preset)): string {
  const secondsOf = ({ seconds }: Experiment) => seconds[preset] ?? seconds.full ?? 0
  const seconds = chosen.reduce((sum, one) => sum + secondsOf(one), 0)
  return seconds < 90 ? `${Math.round(seconds / 5) * 5} s` : `${Math.round(seconds / 60)} minutes`
}
