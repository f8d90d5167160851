import { Command } from 'commander'
import { REGRESSION, THRESHOLD_PERCENT } from '../compare/compare.ts'
import { addComparison, type ComparisonOptions } from '../compare/options.ts'
import { plannedComparison } from '../compare/planned.ts'
import { unlessGiven } from '../presets.ts'
import { addOutputs } from '../report/outputs.ts'
import { fillDocument } from './document.ts'
import type { Experiment } from './experiment.ts'
import { info } from './experiments/info.ts'
import { ioThreads } from './experiments/io-threads.ts'
import { shortConnections } from './experiments/short-connections.ts'
import { slowReader } from './experiments/slow-reader.ts'
import { type CommonOptions, runExperiment } from './run.ts'

/** How this process was called, and what ends it early. */
export interface Invocation {
  commandLine: string
  interrupt: AbortSignal
}

/** `npm run load -- redis`: a subcommand per experiment. */
export function redisCommand(invocation: Invocation): Command {
  return new Command('redis')
    .description("repeat the documents' experiments with Redis itself")
    .addCommand(experimentCommand(shortConnections, invocation))
    .addCommand(experimentCommand(ioThreads, invocation))
    .addCommand(experimentCommand(info, invocation))
    .addCommand(experimentCommand(slowReader, invocation))
    .addCommand(
      new Command('document')
        .description('put the figures of the JSON files beside a document into it')
        .argument('<file>', 'with lines such as <!-- FILE.json, table 1 -->')
        .action(fillDocument),
    )
    .addHelpText(
      'after',
      `
Each experiment starts the builds of Redis that it needs (patched, stock, baseline; see
npm run redis -- --help), on ports and sockets of its own, and removes them afterwards. It needs no
stack, and goes to this machine only (but for client, with a server that you say is yours). Variants
run in turn, round by round; figures are medians with the range. CPU time is what carries over to
other machines: rates depend on how many cores Redis and its load share.

Each takes --quick (about 10 seconds, a first impression) and --json FILE (everything, with all
samples, the machine and the builds). Nothing else should run meanwhile.

Examples:
  npm run load -- redis short-connections --help
  npm run load -- redis short-connections --quick
  npm run load -- redis io-threads --json io-threads.json`,
    )
}

/** The command of one experiment. */
export function experimentCommand<Options extends object>(
  experiment: Experiment<Options>,
  { commandLine, interrupt }: Invocation,
): Command {
  const command = new Command(experiment.name).description(experiment.summary)
  experiment.configure(command)
  if (experiment.compared) addComparison(command)
  return addOutputs(command.option('--quick', 'a first impression in about 10 seconds'))
    .addHelpText('after', `\n${experiment.about.trim()}`)
    .action(async () => {
      const { quick } = command.opts<CommonOptions>()
      const options = unlessGiven<Options & CommonOptions>(command, quick ? experiment.quick : {})
      await runCompared(experiment, options, { commandLine, interrupt })
    })
}

async function runCompared<Options extends object>(
  experiment: Experiment<Options>,
  { compare, threshold = THRESHOLD_PERCENT, ...rest }: Options & CommonOptions & Flags,
  { commandLine, interrupt }: Invocation,
): Promise<void> {
  const options = rest as unknown as Options & CommonOptions
  const flags = { threshold, ...(compare !== undefined && { compare }) }
  const wanted = experiment.compared?.(options)
  const comparison = wanted ? await plannedComparison(experiment.name, flags, wanted) : null
  const result = await runExperiment(experiment, options, commandLine, interrupt)
  if (comparison?.finish(result)) process.exitCode = REGRESSION
}

type Flags = Partial<ComparisonOptions>
