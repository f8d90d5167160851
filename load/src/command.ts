import { seconds, wholeNumber } from '@onetrip/stack/parsers.ts'
import { print } from '@onetrip/stack/terminal.ts'
import { Command, Option } from 'commander'
import type { Experiment, RoundOptions } from './experiments/experiment.ts'
import { addOutputs, type OutputFlags, prepareOutputs } from './reporting/outputs.ts'
import { partOf } from './reporting/part.ts'
import { resultText } from './reporting/terminal.ts'
import { runExperiment } from './run.ts'

export interface Invocation {
  /** The command line of this process, for results. */
  commandLine: string
  /** Aborted by Ctrl-C. */
  interrupt: AbortSignal
}

interface Flags extends OutputFlags {
  quick?: boolean
  full?: boolean
}

/** The command of an experiment, with its own options and the common ones. */
export function experimentCommand(experiment: Experiment, invocation: Invocation): Command {
  const { rounds, duration, quick, full } = experiment
  const [first = '', preset = first] = experiment.name.split(' ')
  const command = new Command(preset)
    .description(experiment.summary)
    .helpGroup(preset === first ? 'Experiments:' : 'Presets:')
    .optionsGroup('Workload:')
  experiment.configure(command)
  command
    .optionsGroup('Duration:')
    .option('--rounds <n>', 'number of runs of each case', wholeNumber(1, 1_000), rounds)
  if (duration !== null) {
    command.option('--duration <seconds>', 'length of one run', seconds(0.1, 3_600), duration)
  }
  const quickText = `a short run: ${settingsText(quick)}`
  command.addOption(new Option('--quick', quickText).conflicts(full ? 'full' : []))
  if (full) command.addOption(new Option('--full', settingsText(full)))
  addOutputs(command.optionsGroup('Results:'))
  return command
    .addHelpText('after', `\n${experiment.about.trim()}`)
    .action(() => measure(experiment, command, invocation))
}

/** The settings of a preset, as on the command line: `--rounds 1 --duration 2`. */
function settingsText(preset: object): string {
  const settings = Object.entries(preset).map(([name, value]) => `--${name} ${value}`)
  return settings.join(' ').replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

/** The experiment's options. The user's values override those of the preset, which override the defaults. */
export function optionsOf(experiment: Experiment, command: Command): object & RoundOptions {
  const flags = command.opts<Flags>()
  const preset = flags.quick ? experiment.quick : flags.full ? (experiment.full ?? {}) : {}
  for (const [name, value] of Object.entries(preset)) {
    const source = command.getOptionValueSource(name) ?? 'default'
    if (source === 'default') command.setOptionValueWithSource(name, value, 'preset')
  }
  const { quick, full, json, report, wide, ...rest } = command.opts<Flags & RoundOptions>()
  const options = { ...rest, duration: rest.duration ?? 0 }
  return experiment.complete?.(options) ?? options
}

async function measure(
  experiment: Experiment,
  command: Command,
  { commandLine, interrupt }: Invocation,
): Promise<void> {
  const options = optionsOf(experiment, command)
  const flags = command.opts<Flags>()
  const save = await prepareOutputs(flags)
  const plan = { options, commandLine, interrupt }
  const { result, error } = await runExperiment(experiment, plan)
  const saved = { name: 'this run', experiment, result }
  try {
    print(resultText(partOf(saved), flags.wide ? Number.POSITIVE_INFINITY : undefined))
  } finally {
    await save(saved)
  }
  if (error !== null && !result.interrupted) throw error
}
