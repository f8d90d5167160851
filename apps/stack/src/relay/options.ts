import { Command, Option } from 'commander'
import { type Endpoint, endpoint } from './endpoint.ts'
import { bandwidth, duration } from './units.ts'

export interface RelayFlags {
  listen: Endpoint
  to: Endpoint
  /** Milliseconds. */
  roundTrip: number
  /** Bits per second. */
  bandwidth: number
}

/** The command line of the relay; what it does is added by the caller. */
export function relayCommand(): Command {
  return new Command('relay')
    .description('simulate a distant link: pass connections on with a delay and a bandwidth')
    .requiredOption('--listen <address>', 'host:port (port 0: any) or path of a socket', endpoint)
    .requiredOption('--to <address>', 'where the server is: host:port or path', endpoint)
    .option('--round-trip <time>', 'there and back: 0.271ms, 135us, 2s', duration, 0)
    .addOption(
      new Option('--bandwidth <rate>', 'each way, shared by all connections: 1Gb/s, 1.8Mb/s')
        .argParser(bandwidth)
        .default(Number.POSITIVE_INFINITY, 'unlimited'),
    )
    .addHelpText(
      'after',
      `
Both addresses are of this machine: 127.0.0.0/8, [::1], localhost, or a Unix socket. It prints a line of
JSON when it listens, and one for each command or event. Half of the round trip is spent each way. The
bandwidth counts the bytes of the stream, not the headers of packets. A connection holds at most twice
what the link holds (at least 64 KiB) each way; then its sender has to wait.

It ends at SIGTERM or SIGINT, and, if standard input is a pipe or a terminal, when that ends. Until
then it takes commands from it, one a line:
  cut                 reset every open connection, at both ends
  cut replies 100     the same, of each once 100 more bytes of replies have come through
  cut requests 100    or of requests
  stall               let nothing through, either way; connections stay open
  resume              go on

Example:
  npm run load -- relay --listen 127.0.0.1:7000 --to 127.0.0.1:6390 --round-trip 48ms --bandwidth 1.8Mb/s`,
    )
}
