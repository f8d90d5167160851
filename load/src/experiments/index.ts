import { clients } from './clients/clients.ts'
import { cluster } from './cluster/cluster.ts'
import type { Experiment } from './experiment.ts'
import { http } from './http/http.ts'
import { latency } from './latency/latency.ts'
import { redisExperiments } from './redis/presets.ts'
import { retention } from './retention/retention.ts'
import { store } from './store/store.ts'

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

/** Experiments that became part of others, in older commands: what to run today. */
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

export const experimentOf = (name: string): Experiment | undefined =>
  experiments.find((one) => one.name === name)

/** Today's arguments for those of an older command; null if its experiment has not been renamed. */
export function renamed([name = '', ...args]: readonly string[]): string[] | null {
  const today = formerNames.get(name)
  const withNames = args.map((word) => {
    const [option = '', ...value] = word.split('=')
    return [formerOptions.get(option) ?? option, ...value].join('=')
  })
  return today ? [...today.split(' '), ...withNames] : null
}
