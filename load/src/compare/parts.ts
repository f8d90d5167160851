import type { RedisFacts } from '@onetrip/stack/redis-info.ts'
import { readHttpResult } from '../http/read-result.ts'
import type { HttpResult, HttpSettings, WorkloadSettings } from '../http/result.ts'
import type { LatencyRate, LatencyResult, LatencySettings } from '../latency/result.ts'
import type { Origin } from '../measure/machine.ts'
import type { ExperimentResult } from '../redis/result.ts'
import { median } from '../statistics.ts'
import type { LinkSample, StoreBenchmarkOptions } from '../store/benchmark.ts'
import { CALLS_FOR_CPU } from '../store/report.ts'
import { figure } from '../table.ts'
import { type Comparable, type Facts, figuresOf, type Row, roundsIn } from './comparable.ts'
import { fewCallsMeasures, latencyMeasures, saturationMeasures, storeMeasures } from './measures.ts'

// How the results of each command are compared; what each relies on is what its format promises.

export function comparableHttp(document: unknown, name: string): Comparable {
  const result: HttpResult = readHttpResult(document, name)
  const { options, samples, summaries } = result
  const limited = new Set(
    summaries.flatMap(({ variant, generatorAtLimit }) => (generatorAtLimit ? [variant] : [])),
  )
  return {
    rows: options.variants.map((variant) => ({
      ...{ at: '', where: '', variant, rate: null, limited: limited.has(variant) },
      figures: figuresOf(
        saturationMeasures,
        samples.filter((sample) => sample.variant === variant),
      ),
    })),
    ...overHttp('http', result, httpLoad(options)),
  }
}

export const httpLoad = (options: HttpSettings): Facts => ({
  connections: options.connections,
  generator: options.generator,
  ...workloadFacts(options),
})

export function comparableLatency(result: LatencyResult): Comparable {
  const { options, samples, summaries } = result
  return {
    rows: summaries.map(({ variant, rate, share, doubts }) => ({
      ...{ ...placeOf({ share, requestsPerSecond: rate }), variant, rate },
      limited: doubts.length > 0,
      figures: figuresOf(
        latencyMeasures,
        samples.filter((sample) => sample.variant === variant && sample.rate === rate),
      ),
    })),
    ...overHttp('latency', result, latencyLoad(options)),
  }
}

export const latencyLoad = (options: LatencySettings): Facts => ({
  connections: options.connections,
  arrivals: options.arrivals,
  ...workloadFacts(options),
})

/** The same share of two capacities is the same place, if the rates are nearly the same (see `judge`). */
function placeOf({ share, requestsPerSecond }: LatencyRate): Pick<Row, 'at' | 'where'> {
  const rate = `${figure(requestsPerSecond)} requests/s`
  if (share === null) return { at: rate, where: rate }
  const percent = `${Math.round(share * 100)} %`
  return { at: percent, where: `${rate} (${percent})` }
}

export type StoreResult = ExperimentResult & {
  options: StoreBenchmarkOptions
  samples: LinkSample[]
}

export function comparableStore(result: StoreResult): Comparable {
  const { options, samples, servers, elsewhere } = result
  const [redis] = servers
  if (!redis) throw new RangeError('there is no Redis')
  return {
    ...common('store', result, [elsewhere ?? 0]),
    rounds: roundsIn(samples),
    rows: storeRows(samples, ''),
    load: storeLoad(options),
    clients: {},
    software: softwareOf(result, redis),
    extent: extentOf(options, samples),
  }
}

export const storeLoad = ({ operation, concurrency, items }: StoreBenchmarkOptions): Facts => ({
  operation,
  'calls in flight': concurrency,
  items: items ?? 'as usual',
})

function storeRows(samples: readonly LinkSample[], what: string): Row[] {
  const settings = ({ poolSize, ioThreads }: LinkSample) =>
    poolSize === 1 && ioThreads === 1 ? '' : `, pool of ${poolSize}, I/O threads: ${ioThreads}`
  const own = Map.groupBy(samples, (one) => `${one.link}${settings(one)} ${one.strategy}`)
  return [...own.values()].flatMap((runs) => {
    const [first] = runs
    if (!first) return []
    const where = `${what}${first.link}${settings(first)}`
    const calls = runs.reduce((sum, run) => sum + run.calls, 0)
    const measures = calls < CALLS_FOR_CPU ? fewCallsMeasures : storeMeasures
    return [
      {
        ...{ at: where, where, variant: first.strategy, rate: null, limited: false },
        figures: figuresOf(measures, runs),
      },
    ]
  })
}

/** What `http` and `latency` have in common. */
function overHttp(
  part: string,
  result: HttpResult | LatencyResult,
  load: Facts,
): Omit<Comparable, 'rows'> {
  const { options, samples, redis, poolSize, workers, clients, generator } = result
  return {
    ...common(part, result, samples.map(shareOf)),
    rounds: roundsIn(samples),
    load: {
      ...load,
      ...wayTo(redis),
      'pool size': poolSize,
      'workers of each API': workers,
    },
    clients,
    software: { ...softwareOf(result, redis), 'version of the generator': generator },
    extent: extentOf(options, samples),
  }
}

function common(
  part: string,
  { date, machine }: Origin,
  elsewhere: readonly number[],
): Pick<Comparable, 'part' | 'date' | 'machine' | 'elsewhere'> {
  return {
    part,
    date,
    machine: { processor: machine.cpu, cores: machine.cores },
    elsewhere: { median: median(elsewhere), most: Math.max(...elsewhere) },
  }
}

const shareOf = ({ elsewhere }: { elsewhere: number | null }) => elsewhere ?? 0

const workloadFacts = ({ workload, sessions, items, reads, seed }: WorkloadSettings): Facts => ({
  ...{ workload, sessions, items, reads, seed },
})

const wayTo = (redis: RedisFacts & { transport?: string }): Facts => ({
  ...(redis.transport !== undefined && { 'way to Redis': redis.transport }),
  "Redis's I/O threads": redis.ioThreads,
})

const softwareOf = ({ git, machine }: Origin, redis: RedisFacts): Facts => ({
  commit: git && `${git.commit.slice(0, 12)}${git.dirty ? ' with changes' : ''}`,
  Node: machine.node,
  kernel: machine.kernel,
  Redis: `${redis.version} ${redis.build ?? 'of another build'}`,
})

const extentOf = (
  { duration, warmup }: { duration: number; warmup?: number },
  samples: readonly { round: number }[],
): Facts => ({
  rounds: roundsIn(samples),
  'seconds per run': duration,
  ...(warmup !== undefined && { 'seconds of warm-up': warmup }),
})
