import { Option } from 'commander'
import { apiFactors, type HttpBench, openBench, warmUpOf } from '../../drivers/http/bench.ts'
import {
  baselineVariant,
  saturate,
  saturationDoubts,
  saturationMetrics,
} from '../../drivers/http/saturation.ts'
import {
  addTarget,
  addWorkload,
  type WorkloadFlags,
  withWorkload,
} from '../../drivers/http/shared-options.ts'
import type { TargetOptions } from '../../drivers/http/target.ts'
import { links } from '../../drivers/redis/links.ts'
import { numbersOption } from '../../drivers/redis/options.ts'
import { packageVersion } from '../../measure/machine.ts'
import { descriptions, variants } from '../../variants.ts'
import type { Experiment } from '../experiment.ts'
import { conclusionOf, sectionsOf } from './report.ts'

type HttpOptions = WorkloadFlags<number[]> & TargetOptions

/** Compares the variants of the API at full speed. */
export const http: Experiment<HttpOptions, HttpBench> = {
  name: 'http',
  title: 'Page views over HTTP, at full speed',
  summary: 'compare the variants of the API at full speed',
  about: `
Starts Redis and the APIs, and stops them at the end. docs/method.md describes the method and its limits.

Variants:
${variants.map((name) => `  ${name.padEnd(17)}${descriptions[name]}`).join('\n')}

Workloads:
  realistic   many sessions; POST /views, and a share of GET /me, /me/views and /items/popular
  articles    one session and one item, only POST /views, as in the articles

With several --connections, --links, --redis-build or --io-threads, every variant is compared with the baseline under
the same conditions. Each Redis and link has APIs of its own. A relay simulates a distance such as 1ms@1Gb/s.

Environment:
  REDIS_URL, REDIS_PASSWORD_FILE   with --url: the Redis of those APIs (its user needs INFO only)
  REDIS_POOL_SIZE            of the stack that the command starts (default: 1)
  REDIS_IO_THREADS           of the Redis that the command starts (default: half of the cores, 2 to 4; 1: off)
  REDIS_SERVER, ONETRIP_HOME, ONETRIP_STATE   as for npm start (npm start -- --help)

Examples:
  npm run load -- --variants naive,sequential,pipeline --json results.json
  npm run load -- --connections 1,64 --links loopback,1ms@1Gb/s
  npm run load -- --redis-build stock,patched --io-threads 1,2
  REDIS_URL=redis://127.0.0.1:6379 npm run load -- --url http://127.0.0.1:3000,http://127.0.0.1:3001`,
  rounds: 5,
  duration: 5,
  quick: { rounds: 5, duration: 2, warmup: 1 },
  full: { rounds: 7, duration: 5, warmup: 3, variants: [...variants] },
  configure(command) {
    addWorkload(command, { variants: ['naive', 'batch'], warmup: 2 })
    command
      .addOption(
        numbersOption('--connections <list>', 'concurrent HTTP connections', [1, 10_000], [64]),
      )
      .addOption(
        new Option(
          '--links <list>',
          'links to Redis, as for store, such as loopback,1ms@1Gb/s (default: loopback)',
        )
          .argParser(links)
          .conflicts(['url', 'transport']),
      )
    addTarget(command)
  },
  complete: withWorkload,

  factors: [{ name: 'connections' }, ...apiFactors],
  subject: 'variant',
  metrics: saturationMetrics,
  progress: ['requestsPerSecond', 'p99'],
  doubts: saturationDoubts,
  baseline: baselineVariant,

  async prepare(context, options) {
    context.describe('software', { Generator: packageVersion('autocannon') })
    return await openBench(context, { ...options, connections: Math.max(...options.connections) })
  },
  cases: ({ cases }, { connections }) =>
    connections.flatMap((count) => cases.map((one) => ({ connections: count, ...one }))),
  warmUp: warmUpOf,
  measure: (one, bench, { round, options, context: { signal } }) =>
    bench.use(one, (api) => {
      const seconds = round === 0 ? options.warmup : options.duration
      return saturate(api, { connections: Number(one.connections), seconds, signal })
    }),

  sections: sectionsOf,
  conclusion: conclusionOf,
}
