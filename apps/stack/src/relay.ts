import { fstatSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Command, Option } from 'commander'
import { listenForInterrupts } from './interrupt.ts'
import { describeError, messageOf, Problem } from './problem.ts'
import { openRelay, type RelayOptions } from './relay/relay.ts'
import { bandwidth, duration, endpoint } from './relay/units.ts'
import { print, printError, surviveClosedOutput } from './terminal.ts'

/** The command line of the relay, without its action. */
export function relayCommand(): Command {
  return new Command('relay')
    .description('simulate a distant link: forward connections with a delay and a bandwidth')
    .requiredOption('--listen <address>', 'host:port (port 0: any) or path of a socket', endpoint)
    .requiredOption('--to <address>', 'address of the server: host:port or path', endpoint)
    .option('--round-trip <time>', 'round-trip time: 0.271ms, 135us, 2s', duration, 0)
    .addOption(
      new Option('--bandwidth <rate>', 'per direction, for all connections: 1Gb/s, 1.8Mb/s')
        .argParser(bandwidth)
        .default(Number.POSITIVE_INFINITY, 'unlimited'),
    )
    .addHelpText(
      'after',
      `
Both addresses must be on this machine: 127.0.0.0/8, [::1], localhost, or a Unix socket. Each direction
delays by half of the round-trip time. The bandwidth counts payload bytes, without packet headers. A
connection has at most twice the bandwidth-delay product (at least 64 KiB) in flight per direction; then
its sender waits.

The relay prints a line of JSON when it listens, and one for each command or event. It exits on SIGTERM or
SIGINT, or when its standard input ends. It reads commands from a pipe or a terminal, one per line:
  cut replies 100     reset each open connection, at both ends, after 100 more bytes of its replies
  stall               forward nothing in either direction; connections stay open
  resume              forward again

Example:
  npm run load -- relay --listen 127.0.0.1:7000 --to 127.0.0.1:6390 --round-trip 48ms --bandwidth 1.8Mb/s`,
    )
}

const report = (event: string, details: object = {}) => print(JSON.stringify({ event, ...details }))

/**
 * Runs a relay until `signal` is aborted, or until standard input ends if it is a pipe or a terminal.
 *
 * @throws Problem if it cannot listen.
 */
export async function runRelay(options: RelayOptions, signal: AbortSignal): Promise<void> {
  const onCut = (withheld: number) => report('connection cut', { withheld })
  const relay = await openRelay(options, onCut).catch((error: unknown) => {
    throw new Problem(`The relay cannot listen: ${messageOf(error)}`)
  })
  const { promise: over, resolve: end } = Promise.withResolvers<unknown>()
  if (signal.aborted) end(signal)
  signal.addEventListener('abort', end)
  const input = fstatSync(0)
  if (input.isFIFO() || input.isSocket() || process.stdin.isTTY) {
    createInterface({ input: process.stdin })
      .on('line', (line) => execute(relay, line))
      .on('close', end)
  }
  report('listening', { address: relay.address })
  await over
  await relay.close()
  process.stdin.destroy() // otherwise it keeps the process alive
}

function execute(relay: Awaited<ReturnType<typeof openRelay>>, line: string): void {
  const command = line.trim()
  const cut = /^cut +replies +(\d{1,15})$/.exec(command)
  if (cut) {
    const bytes = Number(cut[1])
    report('cut', { connections: relay.connections(), bytes })
    relay.cut(bytes)
  } else if (command === 'stall' || command === 'resume') {
    relay.stall(command === 'stall')
    report(command === 'stall' ? 'stalled' : 'resumed')
  } else if (command !== '') {
    report('refused', { command, known: 'cut replies N, stall, resume' })
  }
}

if (import.meta.main) {
  const { signal, interrupt } = listenForInterrupts(printError, 1)
  surviveClosedOutput(() => interrupt('the output was closed'))
  try {
    const command = relayCommand().name('npm run load -- relay').allowExcessArguments(false)
    await runRelay(command.parse().opts<RelayOptions>(), signal)
  } catch (error) {
    printError(describeError(error))
    process.exitCode = 1
  }
}
