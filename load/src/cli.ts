import { Command } from 'commander'
import { printComparison, REGRESSION, readBaseline } from './compare/compare.ts'
import { type ComparisonFlags, compareCommand } from './compare/options.ts'
import { httpCommand, httpOptions } from './http/options.ts'
import { runHttp } from './http/run.ts'
import { listenForInterrupts } from './interrupt.ts'
import { portsExperiment } from './ports/experiment.ts'
import { describeError } from './problem.ts'
import { experimentCommand, redisCommand } from './redis/command.ts'
import { relayCommand } from './relay/options.ts'
import { runRelay } from './relay/run.ts'
import { retentionBenchmark } from './retention/benchmark.ts'
import { storeBenchmark } from './store/benchmark.ts'
import { printError, surviveClosedOutput } from './terminal.ts'

const INTERRUPTED = 130

const interrupts = listenForInterrupts(printError, INTERRUPTED)
surviveClosedOutput(() => interrupts.interrupt('nobody reads the results'))
const commandLine = ['npm run load --', ...process.argv.slice(2)].join(' ')
const invocation = { commandLine, interrupt: interrupts.signal }

const http = httpCommand()
http.allowExcessArguments().action(async () => {
  // `http` is the default, so the name of a command that does not exist ends up here.
  const [extra] = http.args
  if (extra !== undefined) http.error(`error: there is no command '${extra}'; see --help`)
  const worse = await runHttp(httpOptions(http), commandLine, interrupts.signal)
  if (worse) process.exitCode = REGRESSION
})

const compare = compareCommand().action(async (old, newer, { threshold }: ComparisonFlags) => {
  const worse = printComparison(await readBaseline(old), await readBaseline(newer), threshold)
  if (worse) process.exitCode = REGRESSION
})

const program = new Command('npm run load --')
  .description('Measures what one round trip is worth. Without a command: http.')
  .addCommand(http, { isDefault: true })
  .addCommand(redisCommand(invocation))
  .addCommand(experimentCommand(storeBenchmark, invocation))
  .addCommand(experimentCommand(retentionBenchmark, invocation))
  .addCommand(compare)
  .addCommand(experimentCommand(portsExperiment, invocation))
  .addCommand(relayCommand().action((flags) => runRelay(flags, interrupts.signal)))
  .addHelpText(
    'after',
    `
The options of a command: npm run load -- http --help

Examples:
  npm run load
  npm run load -- --connections 8 --duration 2
  npm run load -- http --variants naive,sequential,pipeline --json results.json
  npm run load -- store --quick
  npm run load -- retention`,
  )

try {
  await program.parseAsync()
} catch (error) {
  if (!interrupts.signal.aborted) printError(describeError(error))
  process.exitCode = 1
} finally {
  interrupts.dispose()
}
if (interrupts.signal.aborted) {
  printError('Interrupted; nothing is left running.')
  process.exitCode = INTERRUPTED
}
