import type { Experiment } from './experiment/experiment.ts'
import type { Case } from './experiment/shape.ts'
import { clients } from './experiments/clients/clients.ts'
import { cluster } from './experiments/cluster/cluster.ts'
import { http } from './experiments/http/http.ts'
import { latency } from './experiments/latency/latency.ts'
import { redisExperiments } from './experiments/redis/presets.ts'
import { retention } from './experiments/retention/retention.ts'
import { store } from './experiments/store/store.ts'

/** All experiments, in the order of `--help` and of reports. */
export const experiments: readonly Experiment[] = [
  http,
  latency,
  store,
  clients,
  retention,
  cluster,
  ...redisExperiments,
]

/** Experiments that became part of others, in older results and commands: what to run today. */
const formerNames = new Map([
  ['short-connections', 'redis short'],
  ['io-threads', 'redis threads'],
  ['pipelining', 'redis pipelines'],
  ['commands', 'redis commands'],
  ['pools', 'store --operation record-view --strategies batch,pipeline'],
])
const formerOptions = new Map([
  ['--io-threads', '--threads'],
  ['--pipelines', '--pipeline'],
  ['--keys', '--values'],
  ['--clients', '--connections'],
  ['--callers', '--concurrency'],
  ['--sizes', '--pool-sizes'],
])
const formerFactors = new Map([
  ['callers', 'concurrency'],
  ['pool', 'strategy'],
  ['size', 'poolSize'],
])

/** The experiment with this name, or with this former name. */
export const experimentOf = (name: string): Experiment | undefined =>
  experiments.find((one) => one.name === (formerNames.get(name)?.split(' --')[0] ?? name))

/** Today's arguments for those of an older command; null if its experiment has not been renamed. */
export function renamed([name = '', ...args]: readonly string[]): string[] | null {
  const today = formerNames.get(name)
  const withNames = args.map((word) => {
    const [option = '', ...value] = word.split('=')
    return [formerOptions.get(option) ?? option, ...value].join('=')
  })
  return today ? [...today.split(' '), ...withNames] : null
}

/** The case of an older result as one of today. */
export function caseOfToday(experiment: string, one: Case): Case {
  if (!formerNames.has(experiment)) return one
  const entries = Object.entries(one)
  if (experiment === 'pools') {
    return Object.fromEntries(
      entries.map(([name, value]) => [formerFactors.get(name) ?? name, value]),
    )
  }
  return { threads: 1, build: 'patched', ...one }
}
