import { percentage } from '@onetrip/stack/parsers.ts'
import { Command, Option } from 'commander'
import { THRESHOLD_PERCENT } from './compare.ts'

export interface ComparisonFlags {
  threshold: number
}

/** What `addComparison` adds to a command's options. */
export interface ComparisonOptions {
  compare?: string
  /** In percent. */
  threshold: number
}

/** Adds `--compare` and `--threshold` to a command that measures. */
export function addComparison(command: Command): Command {
  return command
    .option(
      '--compare <file>',
      'say what got better or worse since this result (see compare --help)',
    )
    .addOption(thresholdOption())
}

function thresholdOption(): Option {
  return new Option('--threshold <percent>', 'how much worse is a regression, in a comparison')
    .argParser(percentage)
    .default(THRESHOLD_PERCENT)
}

/** The subcommand's options and help; what it does is added by the caller. */
export function compareCommand(): Command {
  return new Command('compare')
    .description('say what got better or worse between two results of http, latency or store')
    .argument('<old>', 'a file that --json of one of these wrote, or of all')
    .argument('<new>', 'a newer one')
    .addOption(thresholdOption())
    .addHelpText(
      'after',
      `
A change counts when it is beyond noise (its 99 % interval, from the rounds of both files, leaves out
"no change"; of more than a dozen figures the intervals are wider) and larger than the threshold. Judged
are, of each variant that both have:
  - requests/s and p99 (latency: p50 and p99; store: calls/s) as multiples of those of a reference (naive,
    or else sequential, pipeline, noop or the first variant) in the same round, since two hours of a
    machine differ by more than two rounds;
  - CPU time per request or call, of the API, the store and Redis, unless the machine is another one;
  - round trips, commands and connections per request (http).
latency is compared at the same rates, or at the same shares where those are within a tenth. With another
load (connections, workload, generator …) nothing is judged. docs/statistics.md says more.

Exit codes: 0 nothing got worse; 4 something did; 1 the two cannot be compared.

Examples:
  npm run load -- compare main.json mine.json
  npm run load -- compare main.json mine.json --threshold 5
  npm run load -- http --quick --compare main.json
  npm run load -- latency --compare docs/results.json`,
    )
}
