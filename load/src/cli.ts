import { listenForInterrupts } from '@onetrip/stack/interrupt.ts'
import { describeError } from '@onetrip/stack/problem.ts'
import { relayCommand } from '@onetrip/stack/relay/options.ts'
import { runRelay } from '@onetrip/stack/relay/run.ts'
import { printError, surviveClosedOutput } from '@onetrip/stack/terminal.ts'
import { Command } from 'commander'
import { allCommand } from './all/command.ts'
import { runAll } from './all/run.ts'
import { experimentCommands } from './command.ts'
import { printComparison, REGRESSION, readBaseline } from './compare/compare.ts'
import { type ComparisonFlags, compareCommand } from './compare/options.ts'
import { httpCommand, httpOptions } from './http/options.ts'
import { runHttp } from './http/run.ts'
import { latencyCommand, latencyOptions } from './latency/options.ts'
import { runLatency } from './latency/run.ts'
import { portsExperiment } from './ports/experiment.ts'
import { experimentCommand, redisCommand } from './redis/command.ts'
import { reportCommand } from './report/command.ts'
import { documentCommand } from './reporting/document.ts'
import { retentionBenchmark } from './retention/benchmark.ts'
import { storeBenchmark } from './store/benchmark.ts'

const INTERRUPTED = 130

const interrupts = listenForInterrupts(printError, INTERRUPTED)
surviveClosedOutput(() => interrupts.interrupt('nobody reads the results'))
const commandLine = ['npm run load --', ...process.argv.slice(2)].join(' ')
const invocation = { commandLine, interrupt: interrupts.signal }

/** Tells whoever called whether a comparison found something worse. */
function tell(worse: boolean): void {
  if (worse) process.exitCode = REGRESSION
}

const http = httpCommand()
http.allowExcessArguments().action(async () => {
  // `http` is the default, so the name of a command that does not exist ends up here.
  const [extra] = http.args
  const names = program.commands.map((command) => command.name()).join(', ')
  if (extra !== undefined) http.error(`error: there is no command '${extra}', only ${names}`)
  tell(await runHttp(httpOptions(http), commandLine, interrupts.signal))
})

const compare = compareCommand().action(async (old, newer, { threshold }: ComparisonFlags) => {
  tell(printComparison(await readBaseline(old), await readBaseline(newer), threshold))
})

const latency = latencyCommand().action(async () => {
  tell(await runLatency(latencyOptions(latency), commandLine, interrupts.signal))
})

const all = allCommand().action((options) => runAll(options, commandLine, interrupts.signal))

const program: Command = new Command('npm run load --')
  .description(
    'Measures what one round trip is worth. Without a command: http.\n' +
      'How, and what the figures do not say: docs/method.md',
  )
  .helpCommand(false)
  .configureHelp({ subcommandTerm: (command) => command.name() })
  .configureOutput({ getOutHelpWidth: () => process.stdout.columns ?? 100 })
  .commandsGroup('Over HTTP, variant beside variant:')
  .addCommand(http, { isDefault: true })
  .addCommand(latency)
  .commandsGroup('The store, and Redis itself:')
  .addCommand(experimentCommand(storeBenchmark, invocation))
  .addCommand(redisCommand(invocation))
  .addCommand(experimentCommand(retentionBenchmark, invocation))
  .addCommand(experimentCommand(portsExperiment, invocation))
  .commandsGroup('All of these:')
  .addCommand(all)
  .commandsGroup('Results:')
  .addCommand(compare)
  .addCommand(reportCommand())
  .addCommand(documentCommand())
  .commandsGroup('Tools:')
  .addCommand(relayCommand().action((flags) => runRelay(flags, interrupts.signal)))
  .addHelpText(
    'after',
    `
Each command tells its options: npm run load -- http --help
Those that measure take --quick, write --json, --html and --markdown, start what they need and leave
nothing running. Ctrl-C ends them early, twice at once.

Examples:
  npm run load                                      naive and batch side by side, in about a minute
  npm run load -- --quick                           the same, for a first impression
  npm run load -- --quick --compare before.json     did my change make it slower?
  npm run load -- latency --quick                   how long answers take while it keeps up
  npm run load -- all --quick --html report.html    some of everything, as one page
  npm run load -- store --quick                     the documents' table 4
  npm run load -- redis short-connections --quick   what a short connection costs Redis`,
  )

for (const command of experimentCommands(invocation)) {
  if (command.name() === 'http') command.name('http2')
  program.addCommand(command)
}
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
