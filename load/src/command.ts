import { percentage, seconds, wholeNumber } from '@onetrip/stack/parsers.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { print } from '@onetrip/stack/terminal.ts'
import { Command, Option } from 'commander'
import {
  printComparison,
  REGRESSION,
  requireComparable,
  THRESHOLD_PERCENT,
} from './comparing/compare.ts'
import type { Experiment, RoundOptions } from './experiment/experiment.ts'
import { earlyText, throwFailure } from './experiment/rounds.ts'
import { readResults, type SavedResult } from './reporting/files.ts'
import { addOutputs, type OutputFlags, prepareOutputs } from './reporting/outputs.ts'
import { resultText } from './reporting/terminal.ts'
import { runExperiment } from './run.ts'

/** How this process was called, and what ends it early. */
export interface Invocation {
  commandLine: string
  interrupt: AbortSignal
}

interface Flags extends OutputFlags {
  quick?: boolean
  full?: boolean
  compare?: string
  threshold: number
}

/** What a command line says. */
interface Given {
  options: object & RoundOptions
  outputs: OutputFlags
  compare: string | undefined
  threshold: number
}

/** The command of an experiment: its own options, and those that all have. */
export function experimentCommand(experiment: Experiment, invocation: Invocation): Command {
  const command = new Command(experiment.name)
    .description(experiment.summary)
    .helpGroup(`${experiment.group}:`)
    .optionsGroup('What is measured:')
  experiment.configure(command)
  addRounds(command, experiment)
  addOutputs(command.optionsGroup('Results:'))
    .option('--compare <file>', 'say what got better or worse since this result')
    .addOption(thresholdOption())
  return command.addHelpText('after', `\n${experiment.about.trim()}`).action(async () => {
    if (await measure(experiment, optionsOf(experiment, command), invocation)) {
      process.exitCode = REGRESSION
    }
  })
}

/** What the user gave, else as the preset has it that was asked for, else the defaults. */
export function optionsOf(experiment: Experiment, command: Command): Given {
  const given = command.opts<RoundOptions & Flags>()
  const preset = given.quick ? experiment.quick : given.full ? (experiment.full ?? {}) : {}
  const open = Object.entries(preset).filter(([name]) => {
    const source = command.getOptionValueSource(name)
    return source === undefined || source === 'default'
  })
  const { json, html, markdown, report, compare, threshold, quick, full, ...rest } = {
    ...given,
    ...Object.fromEntries(open),
  }
  const options = { ...rest, duration: rest.duration ?? 0 }
  return {
    options: experiment.complete?.(options) ?? options,
    outputs: { json, html, markdown, report },
    ...{ compare, threshold },
  }
}

function addRounds(command: Command, { rounds, duration, quick, full }: Experiment): void {
  const told = (options: object) =>
    Object.entries(options)
      .map(([name, value]) => `--${dashed(name)} ${value}`)
      .join(' ')
  command
    .optionsGroup('How much:')
    .option('--rounds <n>', 'how often each case is run', wholeNumber(1, 1_000), rounds)
  if (duration !== null) {
    command.option('--duration <seconds>', 'length of one run', seconds(0.1, 3_600), duration)
  }
  command.addOption(
    new Option('--quick', `a first impression: ${told(quick)}`).conflicts(full ? 'full' : []),
  )
  if (full) command.addOption(new Option('--full', told(full)).conflicts('quick'))
}

const dashed = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

function thresholdOption(): Option {
  return new Option('--threshold <percent>', 'how much worse is a regression, in a comparison')
    .argParser(percentage)
    .default(THRESHOLD_PERCENT)
}

/** @returns whether something got worse than in the result that `--compare` names. */
async function measure(
  experiment: Experiment,
  { options, outputs, compare, threshold }: Given,
  { commandLine, interrupt }: Invocation,
): Promise<boolean> {
  const before = compare === undefined ? null : await readOne(compare, experiment)
  if (before) requireComparable(experiment, before, { ...options })
  const save = await prepareOutputs(outputs)
  const { result, early } = await runExperiment(experiment, {
    ...{ options, commandLine, interrupt },
    comparedWith: before?.result ?? null,
  })
  try {
    print(earlyText(early) + resultText(experiment, result))
  } finally {
    await save([{ name: 'this run', experiment, result }])
  }
  throwFailure(early)
  if (!before) return false
  print()
  return printComparison(experiment, before, { name: 'This run', result }, threshold)
}

/** The result of an experiment in a file, or in a folder with one for each. */
async function readOne(path: string, experiment: Experiment): Promise<SavedResult> {
  const all = await readResults(path)
  const found = all.find((one) => one.experiment === experiment)
  if (found) return found
  const has = all.map(({ experiment }) => experiment.name).join(', ')
  throw new Problem(`${path} has no result of ${experiment.name}, but of ${has}.`)
}

/** `npm run load -- compare OLD NEW`. */
export function compareCommand(): Command {
  const command = new Command('compare')
    .description('say what got better or worse between two results')
    .argument('<old>', 'a file that --json wrote, or a folder of all')
    .argument('<new>', 'a newer one')
    .addOption(thresholdOption())
    .addHelpText(
      'after',
      `
Two results of the same experiment are compared case by case. A change counts when it is beyond noise (its
99 % interval, from the rounds of both, leaves out "no change"; of more than a dozen figures the intervals
are wider) and larger than the threshold. Judged are:
  - rates and latencies as multiples of those of a reference (naive, where there is one) in the same
    round, since two hours of a machine differ by more than two rounds;
  - CPU time per request or command, unless the machine is another one;
  - counts: round trips, commands, connections, system calls.
With another load (connections, workload, generator …) nothing is judged. Both need two rounds or more:
--quick of most experiments has one, so give --rounds 3, too. docs/statistics.md says more.

Exit codes: 0 nothing got worse; 4 something did; 1 the two cannot be compared.

Examples:
  npm run load -- compare main.json mine.json
  npm run load -- compare load/results mine --threshold 5
  npm run load -- http --quick --compare main.json`,
    )
  return command.action(async (old: string, newer: string) => {
    const { threshold } = command.opts<{ threshold: number }>()
    if (await compareAll(old, newer, threshold)) process.exitCode = REGRESSION
  })
}

async function compareAll(old: string, newer: string, threshold: number): Promise<boolean> {
  const [before, after] = [await readResults(old), await readResults(newer)]
  const pairs = after.flatMap((now) => {
    const alike = before.filter(({ experiment }) => experiment === now.experiment)
    const then = alike.find(({ name }) => name === now.name) ?? alike[0]
    return then ? [{ then, now }] : []
  })
  if (pairs.length === 0) {
    const [has, wanted] = [before, after].map((results) =>
      results.map(({ experiment }) => experiment.name).join(', '),
    )
    throw new Problem(`${old} is about ${has}, ${newer} about ${wanted}: nothing can be compared.`)
  }
  const problems: string[] = []
  let isWorse = false
  for (const [index, { then, now }] of pairs.entries()) {
    if (index > 0) print()
    try {
      if (printComparison(now.experiment, then, now, threshold)) isWorse = true
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      problems.push(pairs.length === 1 ? error.message : `${now.experiment.name}: ${error.message}`)
    }
  }
  if (problems.length > 0 && !isWorse) throw new Problem(problems.join('\n'))
  if (problems.length > 0) print(`\n${problems.join('\n')}`)
  return isWorse
}
