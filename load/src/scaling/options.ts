import { listOf, seconds, wholeNumber } from '@onetrip/stack/parsers.ts'
import { Command, Option } from 'commander'
import { addComparison, type ComparisonOptions } from '../compare/options.ts'
import { variants } from '../contenders.ts'
import { generators } from '../drivers/http/generator.ts'
import { addWorkload, withWorkload } from '../drivers/http/shared-options.ts'
import { type LinkPlan, links } from '../drivers/redis/links.ts'
import { numbersOption } from '../drivers/redis/options.ts'
import { addPresets, type Presets, withPresets } from '../presets.ts'
import { addOutputs, type OutputFlags } from '../report/outputs.ts'
import { dimensions, type ScalingSettings } from './result.ts'

export type ScalingOptions = ScalingSettings &
  OutputFlags &
  ComparisonOptions & {
    connections: number[]
    workers: number[]
    links: LinkPlan[]
  }

const usualLinks = 'unix,loopback,switch,1ms@1Gb/s,vpn'

const presets: Presets<ScalingOptions> = {
  quick: {
    ...{ rounds: 1, duration: 0.5, warmup: 0.2 },
    connections: [1, 64, 1_000],
    links: links('unix,switch,vpn'),
  },
  full: { rounds: 5, duration: 2, warmup: 1 },
}

/** The options of `scaling`, with presets and defaults filled in. */
export function scalingOptions(command: Command): ScalingOptions {
  const options = withPresets<ScalingOptions>(command, presets)
  const most = Math.max(...options.connections)
  const filled = withWorkload(command, { ...options, connections: most })
  return { ...filled, connections: options.connections.toSorted((a, b) => a - b) }
}

/** The subcommand's options and help; what it does is added by the caller. */
export function scalingCommand(): Command {
  const command = new Command('scaling')
    .description('compare the variants by connections, API processes, and distance to Redis')
    .addOption(
      new Option('--only <list>', `out of ${dimensions.join(', ')}`)
        .argParser(listOf(dimensions))
        .default([...dimensions], 'all'),
    )
    .addOption(
      numbersOption('--connections <list>', 'HTTP connections at the same time', {
        ...{ min: 1, max: 10_000, defaults: [1, 4, 16, 64, 256, 1_000] },
      }),
    )
    .addOption(
      numbersOption('--workers <list>', 'processes of the API', {
        ...{ min: 1, max: 64, defaults: [1, 2] },
      }),
    )
    .addOption(
      new Option('--links <list>', 'ways to Redis (see npm run load -- store --help)')
        .argParser(links)
        .default(links(usualLinks), usualLinks),
    )
    .addOption(
      new Option('--variants <list>', `out of ${variants.join(', ')}`)
        .argParser(listOf(variants))
        .default(['naive', 'pipeline', 'batch'], 'naive,pipeline,batch'),
    )
    .option('--duration <seconds>', 'length of one run', seconds(0.5, 3_600), 1)
    .option('--rounds <n>', 'how often each variant is run', wholeNumber(1, 1_000), 3)
    .option('--warmup <seconds>', 'per API, before the first round', seconds(0, 600), 0.5)
    .addOption(
      new Option('--generator <name>', 'what sends the requests')
        .choices(generators)
        .default('autocannon'),
    )
  addWorkload(command)
  addPresets(command, {
    quick: 'a first impression in about a minute',
    full: '5 rounds of 2 s; about 10 minutes',
  })
  return addOutputs(addComparison(command)).addHelpText(
    'after',
    `
Full speed, as with npm run load -- http, while one thing changes and the rest stays as it is: 64
connections, one process of the API, Redis at 127.0.0.1.
  connections   HTTP connections at the same time, 1 to 1,000
  workers       processes of the API. The generator can fill a core, and so can each of them: rows where
                that is more than there are cores are marked, and say little about a bigger machine.
  distance      ways to Redis: Unix socket, loopback, and through a relay 0.271 ms (a switch), 1 ms, and
                48 ms with 1.8 Mb/s (a VPN), as in table 4 of the documents, which measured the store
                alone (npm run load -- store). Here sequential runs, too, as it is the other half of
                that table.

With 500 connections and more a run takes at least 3 s, over links of 10 ms and more 6 s.

It starts its own Redis, APIs and relays, and removes them afterwards. Each round runs every variant at
every point once, in changing order. Rates are medians over the rounds, with the range; a ratio compares
two runs of the same round and point. docs/method.md has more.

Examples:
  npm run load -- scaling
  npm run load -- scaling --quick
  npm run load -- scaling --only distance --links loopback,switch,5ms@100Mb/s
  npm run load -- scaling --only connections --connections 1,64,1000 --variants noop,batch,node-redis
  npm run load -- scaling --only workers --workers 1,2,4 --variants batch
  npm run load -- scaling --json scaling.json --html scaling.html`,
  )
}
