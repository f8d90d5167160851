import { listenForInterrupts } from '@onetrip/stack/interrupt.ts'
import { describeError, Problem } from '@onetrip/stack/problem.ts'
import { relayCommand, runRelay } from '@onetrip/stack/relay.ts'
import { printError, surviveClosedOutput } from '@onetrip/stack/terminal.ts'
import { Command } from 'commander'
import { experimentCommand, type Invocation } from './command.ts'
import { commandLineOf } from './command-line.ts'
import { experiments, renamed } from './experiments/index.ts'
import { publishCommand } from './publish/publish.ts'
import { compareCommand } from './reporting/compare.ts'
import { documentCommand } from './reporting/document.ts'
import { reportCommand } from './reporting/outputs.ts'
import { wireCommand } from './wire/wire.ts'

const INTERRUPTED = 130

/** The command line of all experiments and tools. */
export function loadProgram(invocation: Invocation): Command {
  const program = new Command('npm run load --')
    .description(
      'Load tests and benchmarks. The default command is http. The method: docs/method.md.',
    )
    .helpCommand(false)
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .configureOutput({ getOutHelpWidth: () => process.stdout.columns ?? 100 })

  const redis = new Command('redis')
    .description('builds of Redis: presets for short connections, I/O threads, pipelines, commands')
    .helpGroup('Experiments:')
    .helpCommand(false)
  for (const experiment of experiments) {
    const parent = experiment.name.startsWith('redis ') ? redis : program
    parent.addCommand(experimentCommand(experiment, invocation))
  }
  program.addCommand(redis)

  program
    .commandsGroup('Results:')
    .addCommand(compareCommand())
    .addCommand(reportCommand())
    .addCommand(documentCommand())
    .addCommand(publishCommand(invocation))
    .commandsGroup('Tools:')
    .addCommand(wireCommand(invocation))
    .addCommand(relayCommand().action((flags) => runRelay(flags, invocation.interrupt)))
    .addHelpText(
      'after',
      `
For the options of a command: npm run load -- http --help. A command stops all programs that it started.
Ctrl-C ends a command early; a second Ctrl-C kills it.

Examples:
  npm run load                                      naive and batch side by side, in about a minute
  npm run load -- compare before.json after.json    regressions between two results
  npm run load -- latency --quick                   latency at fixed rates
  npm run load -- redis short --quick               CPU time of a short connection in Redis`,
    )

  for (const command of [...program.commands, ...redis.commands])
    command.copyInheritedSettings(program)
  return program
}

/** The arguments with the default command. @throws Problem for the former name of an experiment. */
export function completed(args: readonly string[]): string[] {
  if (args[0] === 'doctor') {
    throw new Problem(
      `The doctor is a program of its own: ${['npm run doctor --', ...args.slice(1)].join(' ')}`,
    )
  }
  const today = renamed(args)
  if (today) {
    const command = commandLineOf('npm run load --', today)
    throw new Problem(`${args[0]} is part of another experiment now: ${command}`)
  }
  const [first = '-'] = args
  const isDefault = first.startsWith('-') && !['-h', '--help'].includes(first)
  return isDefault ? ['http', ...args] : [...args]
}

if (import.meta.main) {
  const args = process.argv.slice(2)
  const interrupts = listenForInterrupts(printError, INTERRUPTED)
  surviveClosedOutput(() => interrupts.interrupt('standard output was closed'))
  const program = loadProgram({
    commandLine: commandLineOf('npm run load --', args),
    interrupt: interrupts.signal,
  })
  try {
    await program.parseAsync(completed(args), { from: 'user' })
  } catch (error) {
    if (error !== interrupts.signal.reason) printError(describeError(error))
    process.exitCode = 1
  } finally {
    interrupts.dispose()
  }
  if (interrupts.signal.aborted) {
    printError('Interrupted. Everything that this command started has been stopped.')
    process.exitCode = INTERRUPTED
  }
}
