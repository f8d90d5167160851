import { listenForInterrupts } from '@onetrip/stack/interrupt.ts'
import { describeError } from '@onetrip/stack/problem.ts'
import { relayCommand, runRelay } from '@onetrip/stack/relay.ts'
import { printError, surviveClosedOutput } from '@onetrip/stack/terminal.ts'
import { Command } from 'commander'
import { allCommand } from './all.ts'
import { capacityCommand } from './capacity/capacity.ts'
import { experimentCommand } from './command.ts'
import { commandLineOf } from './command-line.ts'
import { compareCommand } from './comparing/compare.ts'
import { doctorCommand } from './doctor/doctor.ts'
import { experiments } from './experiments.ts'
import { documentCommand } from './reporting/document.ts'
import { reportCommand } from './reporting/outputs.ts'

const INTERRUPTED = 130

const interrupts = listenForInterrupts(printError, INTERRUPTED)
surviveClosedOutput(() => interrupts.interrupt('nobody reads the results'))
const invocation = {
  commandLine: commandLineOf('npm run load --', process.argv.slice(2)),
  interrupt: interrupts.signal,
}

const program = new Command('npm run load --')
  .description(
    'Measures what one round trip is worth. Without a command: http. See docs/method.md.',
  )
  .helpCommand(false)
  .configureHelp({ subcommandTerm: (command) => command.name() })
  .configureOutput({ getOutHelpWidth: () => process.stdout.columns ?? 100 })

for (const experiment of experiments) {
  program.addCommand(experimentCommand(experiment, invocation))
}

program
  .commandsGroup('All of these:')
  .addCommand(allCommand(invocation))
  .commandsGroup('Results:')
  .addCommand(compareCommand())
  .addCommand(reportCommand())
  .addCommand(documentCommand())
  .commandsGroup('Tools:')
  .addCommand(capacityCommand(invocation))
  .addCommand(doctorCommand(invocation))
  .addCommand(relayCommand().action((flags) => runRelay(flags, interrupts.signal)))
  .addHelpText(
    'after',
    `
Each command has its own options: npm run load -- http --help. Those that measure start what they need and
leave nothing running. Ctrl-C stops early; a second one kills.

Examples:
  npm run load                                      naive and batch side by side, in about a minute
  npm run load -- --quick --compare before.json     did my change make it slower?
  npm run load -- latency --quick                   how long answers take while it keeps up
  npm run load -- all --quick --html report.html    some of everything, as one page
  npm run load -- short-connections --quick         what a short connection costs Redis`,
  )

for (const command of program.commands) command.copyInheritedSettings(program)

// Without a command: http.
const args = process.argv.slice(2)
const [first = '-'] = args
const isDefault = first.startsWith('-') && !['-h', '--help'].includes(first)
try {
  await program.parseAsync(isDefault ? ['http', ...args] : args, { from: 'user' })
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
