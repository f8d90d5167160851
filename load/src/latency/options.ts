import { listOf, seconds, wholeNumber } from '@onetrip/stack/parsers.ts'
import { Command, Option } from 'commander'
import { addComparison, type ComparisonOptions } from '../compare/options.ts'
import { variants } from '../contenders.ts'
import type { TargetOptions } from '../drivers/http/target.ts'
import { MOST_SECONDS } from '../drivers/pacer/arrivals.ts'
import { numbers, numbersOption } from '../drivers/redis/options.ts'
import { addTarget, addWorkload, withWorkload } from '../http/shared-options.ts'
import { addPresets, type Presets, withPresets } from '../presets.ts'
import { addOutputs, type OutputFlags } from '../report/outputs.ts'
import { arrivals, type LatencySettings } from './result.ts'

export type LatencyOptions = LatencySettings &
  TargetOptions &
  OutputFlags &
  ComparisonOptions & {
    /** Requests per second; instead of shares. */
    rate?: number[]
    /** Of the slowest variant's capacity, in percent. */
    shares: number[]
  }

const presets: Presets<LatencyOptions> = {
  quick: { rounds: 1, duration: 2, warmup: 0.5 },
  full: { rounds: 5, duration: 3, warmup: 2, requests: 100_000 },
}

/** The options of `latency`, with presets and defaults filled in. */
export function latencyOptions(command: Command): LatencyOptions {
  return withWorkload(command, withPresets<LatencyOptions>(command, presets))
}

/** The subcommand's options and help; what it does is added by the caller. */
export function latencyCommand(): Command {
  const command = new Command('latency')
    .description('compare how long answers take at a fixed rate')
    .addOption(
      numbersOption('--shares <list>', 'rates, in percent of what the slowest variant can do', {
        min: 1,
        max: 1_000,
        defaults: [25, 50, 75, 90],
      }),
    )
    .addOption(
      new Option('--rate <list>', 'rates in requests/s, instead of --shares')
        .argParser(numbers(1, 1_000_000))
        .conflicts('shares'),
    )
    .addOption(
      new Option('--variants <list>', `out of ${variants.join(', ')}`)
        .argParser(listOf(variants))
        .default(['naive', 'pipeline', 'batch'], 'naive,pipeline,batch'),
    )
    .addOption(
      new Option('--arrivals <how>', 'evenly spaced, or at random times of the same mean rate')
        .choices(arrivals)
        .default('even'),
    )
    .option('--connections <n>', 'HTTP connections at the same time', wholeNumber(1, 10_000), 64)
    .option('--duration <seconds>', 'length of one run', seconds(0.5, 3_600), 3)
    .option(
      '--requests <n>',
      `of each variant at each rate, over all rounds: runs are longer than --duration where ${MOST_SECONDS} s are enough for that`,
      wholeNumber(0, 10_000_000),
      0,
    )
    .option('--rounds <n>', 'how often each variant is run at each rate', wholeNumber(1, 1_000), 3)
    .option('--warmup <seconds>', 'per variant, before the first round', seconds(0, 600), 1)
  addTarget(addWorkload(command))
  addPresets(command, {
    quick: 'a first impression in less than a minute',
    full: '5 rounds, 100,000 requests where the rate allows; about 11 minutes',
  })
  return addOutputs(addComparison(command)).addHelpText(
    'after',
    `
Requests are due at a fixed rate, whatever the API does, as the visitors of a site come whether or not it
is quick. The clock of a request starts when it was due: if the API stalls for 300 ms, all requests that
were due meanwhile have waited. (npm run load -- http asks as fast as it gets answers: a stall then stops
the asking, too, and hardly shows.)

First each variant is run at full speed for a moment. The rates are shares of what the slowest of them can
do, so that all can keep up, and the same for all. With --rate they are as you say.

A request that is due while all connections are busy waits in line, and its clock runs. One that fails, or
is still in line a second after the end, counts as slower than all others. A percentile is shown when at
least ten requests are beyond it: p99.99 needs 100,000 requests of a variant at a rate, so more rounds,
longer runs, or --requests 100000.

"sent late" says how well the generator kept to the schedule. Rows where it did not, or where it was busy
all the time, are marked, and nothing is claimed from them. docs/method.md has more.

With --compare it takes the rates of that file, unless --rate says others, and measures no capacity.

It measures what npm start runs, or starts a stack of its own (see npm run load -- http --help, also for the
environment variables and what --workload means).

Examples:
  npm run load -- latency
  npm run load -- latency --quick
  npm run load -- latency --variants naive,batch,connect-redis --shares 50,90
  npm run load -- latency --rate 1000,5000 --variants pipeline,batch --arrivals poisson
  npm run load -- latency --full --json latency.json --html latency.html
  REDIS_URL=redis://127.0.0.1:6379 npm run load -- latency --url http://127.0.0.1:3000 --rate 500`,
  )
}
