import { listenForInterrupts } from '@onetrip/stack/interrupt.ts'
import { describeError } from '@onetrip/stack/problem.ts'
import { relayCommand, runRelay } from '@onetrip/stack/relay.ts'
import { printError, surviveClosedOutput } from '@onetrip/stack/terminal.ts'
import { Command } from 'commander'
import { allCommand } from './all.ts'
import { experimentCommand } from './command.ts'
import { compareCommand } from './comparing/compare.ts'
import { experiments } from './experiments.ts'
import { documentCommand } from './reporting/document.ts'
import { reportCommand } from './reporting/report.ts'

const INTERRUPTED = 130

const interrupts = listenForInterrupts(printError, INTERRUPTED)
surviveClosedOutput(() => interrupts.interrupt('nobody reads the results'))
const invocation = {
  commandLine: ['npm run load --', ...process.argv.slice(2)].join(' '),
  interrupt: interrupts.signal,
}

const program = new Command('npm run load --')
  .description(
    'Measures what one round trip is worth. Without a command: http.\n' +
      'How, and what the figures do not say: docs/method.md',
  )
  .helpCommand(false)
  .configureHelp({ subcommandTerm: (command) => command.name() })
  .configureOutput({ getOutHelpWidth: () => process.stdout.columns ?? 100 })

for (const experiment of experiments) {
  const command = experimentCommand(experiment, invocation)
  program.addCommand(command, { isDefault: experiment.name === 'http' })
}

program
  .commandsGroup('All of these:')
  .addCommand(allCommand(invocation))
  .commandsGroup('Results:')
  .addCommand(compareCommand())
  .addCommand(reportCommand())
  .addCommand(documentCommand())
  .commandsGroup('Tools:')
  .addCommand(relayCommand().action((flags) => runRelay(flags, interrupts.signal)))
  .addHelpText(
    'after',
    `
Each command tells its options: npm run load -- http --help
Those that measure take --quick, write --json, --html and --markdown, start what they need and leave
nothing running. Ctrl-C stops early; a second one kills.

Examples:
  npm run load                                      naive and batch side by side, in about a minute
  npm run load -- --quick                           the same, for a first impression
  npm run load -- --quick --compare before.json     did my change make it slower?
  npm run load -- latency --quick                   how long answers take while it keeps up
  npm run load -- all --quick --html report.html    some of everything, as one page
  npm run load -- store --quick                     the documents' table 4
  npm run load -- short-connections --quick         what a short connection costs Redis`,
  )

for (const command of program.commands) command.copyInheritedSettings(program)

// What is no command would else be an argument of the default one.
const names = program.commands.map((command) => command.name())
const [first] = process.argv.slice(2)
if (first !== undefined && !first.startsWith('-') && !names.includes(first)) {
  program.error(`error: there is no command '${first}', only ${names.join(', ')}`)
}

try {
  await program.parseAsync()
} catch (error) {
  if (error !== interrupts.signal.reason) printError(describeError(error))
  process.exitCode = 1
} finally {
  interrupts.dispose()
}
if (interrupts.signal.aborted) {
  printError('Interrupted; nothing is left running.')
  process.exitCode = INTERRUPTED
}
