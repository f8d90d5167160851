import { describeError } from './problem.ts'
import { type RelayFlags, relayCommand } from './relay/options.ts'
import { runRelay } from './relay/run.ts'
import { printError, surviveClosedOutput } from './terminal.ts'

// A process of its own, and so an entry of its own: a test or benchmark that starts it has the
// process itself, without npm or the other commands of load in between.

const end = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => end.abort())
}
surviveClosedOutput(() => end.abort())

try {
  const command = relayCommand().name('node apps/stack/src/relay.ts').allowExcessArguments(false)
  command.parse()
  await runRelay(command.opts<RelayFlags>(), end.signal)
} catch (error) {
  printError(describeError(error))
  process.exitCode = 1
}
