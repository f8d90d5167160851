import { spawn } from 'node:child_process'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { styleText } from 'node:util'
import { listOf } from '@onetrip/stack/parsers.ts'
import { places } from '@onetrip/stack/places.ts'
import { describeError, messageOf, Problem } from '@onetrip/stack/problem.ts'
import { print, printError } from '@onetrip/stack/terminal.ts'
import { Command, Option } from 'commander'
import type { Invocation } from './command.ts'
import type { Experiment, Preset } from './experiment/experiment.ts'
import { experiments } from './experiments.ts'
import { readResult, type SavedResult } from './reporting/files.ts'
import { addOutputs, type OutputFlags, prepareOutputs } from './reporting/outputs.ts'

interface AllOptions extends OutputFlags {
  quick?: boolean
  full?: boolean
  only?: string[]
}

const cli = fileURLToPath(new URL('cli.ts', import.meta.url))

/** `npm run load -- all`: every experiment, one after the other, and one report of them. */
export function allCommand(invocation: Invocation): Command {
  const names = experiments.map(({ name }) => name)
  const command = new Command('all')
    .description('run all experiments, and make one report of them')
    .helpGroup('All of these:')
    .addOption(new Option('--quick', 'a first impression of most').conflicts('full'))
    .addOption(new Option('--full', 'more of everything').conflicts('quick'))
    .addOption(new Option('--only <list>', `out of ${names.join(', ')}`).argParser(listOf(names)))
  addOutputs(command, 'json <folder>', 'write the result of each to a file of this folder')
  return command.addHelpText('after', `\n${about}`).action(async () => {
    await runAll(command.opts<AllOptions>(), invocation)
  })
}

const about = `
Each runs as a command of its own. One that fails does not keep the others from running; Ctrl-C ends all, and
what is complete by then is kept. About ${minutes('quick')} minutes with --quick, ${minutes('usual')} without, ${minutes('full')} with --full.

Examples:
  npm run load -- all --quick --html report.html
  npm run load -- all --full --json load/results
  npm run load -- all --only http,store`

function minutes(preset: Preset): number {
  const seconds = experiments.reduce((sum, one) => sum + (one.seconds[preset] ?? 0), 0)
  return Math.ceil(seconds / 60)
}

/** @throws Problem when one failed, after all was written; the reason of the interrupt when none is complete. */
async function runAll(options: AllOptions, { interrupt }: Invocation): Promise<void> {
  const { quick, full, only, json, ...outputs } = options
  const preset = quick ? 'quick' : full ? 'full' : 'usual'
  const chosen = experiments.filter(({ name, seconds }) =>
    only ? only.includes(name) : seconds[preset] !== null,
  )
  const folder = resolve(json ?? join(dirname(places().report), 'results'))
  await makeEmpty(folder, json !== undefined)
  const save = await prepareOutputs(outputs)
  const results: SavedResult[] = []
  const failed: string[] = []
  const startedAt = new Date().toISOString()
  for (const [index, experiment] of chosen.entries()) {
    if (interrupt.aborted) break
    print(`${index === 0 ? '' : '\n\n'}${heading(chosen, index, preset)}\n`)
    const file = join(folder, `${experiment.name}.json`)
    const code = await runOne(experiment, preset, file)
    const saved = await readNew(file, startedAt)
    if (saved) results.push(saved)
    if ((code !== 0 || !saved) && !interrupt.aborted) failed.push(experiment.name)
  }
  if (results.length === 0) {
    interrupt.throwIfAborted()
    throw new Problem('Nothing was measured; see above.')
  }
  const problem = failed.length > 0 ? [`Not measured to the end: ${failed.join(', ')}.`] : []
  await save(results, problem)
  print(`\nThe results are in ${folder}`)
  if (failed.length > 0) throw new Problem(`${problem[0]} The reasons are above.`)
}

/** The result in a file; null, with the reason printed, if there is none of this run. */
async function readNew(file: string, startedAt: string): Promise<SavedResult | null> {
  try {
    const saved = await readResult(file)
    return saved.result.date >= startedAt ? saved : null
  } catch (error) {
    printError(describeError(error))
    return null
  }
}

/** Old results would look like new ones. */
async function makeEmpty(folder: string, isGiven: boolean): Promise<void> {
  try {
    await mkdir(folder, { recursive: true })
    if (isGiven) return
    for (const name of await readdir(folder)) {
      if (name.endsWith('.json')) await rm(join(folder, name))
    }
  } catch (error) {
    throw new Problem(`${folder} cannot be written: ${messageOf(error)}.`)
  }
}

/** Runs an experiment in a process of its own, which a Ctrl-C in the terminal reaches as it does this one. */
function runOne(experiment: Experiment, preset: Preset, file: string): Promise<number | null> {
  const flags = preset === 'quick' || (preset === 'full' && experiment.full) ? [`--${preset}`] : []
  const args = [cli, experiment.name, ...flags, '--json', file, '--no-report']
  const child = spawn(process.execPath, [...process.execArgv, ...args], { stdio: 'inherit' })
  const pass = (signal: NodeJS.Signals) => void child.kill(signal)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, pass)
  return new Promise((done) => {
    child.once('error', (error) => {
      printError(error.message)
      done(1)
    })
    child.once('exit', (code) => {
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, pass)
      done(code)
    })
  })
}

/** `[2/5] latency: about 2 minutes; 6 minutes to the end`. */
function heading(chosen: readonly Experiment[], index: number, preset: Preset): string {
  const secondsOf = ({ seconds }: Experiment) => seconds[preset] ?? seconds.full ?? 0
  const left = chosen.slice(index).map(secondsOf)
  const [own = 0] = left
  const all = left.reduce((sum, seconds) => sum + seconds, 0)
  const name = styleText('bold', chosen[index]?.name ?? '')
  return `[${index + 1}/${chosen.length}] ${name}: about ${inWords(own)}; ${inWords(all)} to the end`
}

function inWords(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds / 5) * 5} s`
  return `${Math.round(seconds / 60)} minutes`
}
