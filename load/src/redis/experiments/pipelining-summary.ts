import { GENERATOR_LIMIT } from '../../drivers/redis/redis-benchmark.ts'
import { pairwiseRatios, type Summary, summarize } from '../../statistics.ts'
import type { Work } from './pipelining-work.ts'

/** One run of one work. A value is what a key holds: a MGET of 10 gets 10 values. */
export interface Run {
  valuesPerSecond: number
  /** CPU time of Redis's main thread, in microseconds. */
  mainMicrosPerValue: number
  /** How often Redis read from a socket. */
  readsPerValue: number
  /** Milliseconds until the first answer of a pipeline. */
  p50: number
  p99: number
  /** Shares of the time, 0 to 1. */
  redisDemand: number
  generatorDemand: number | null
  requests: number
  command: string
}

/** All runs of one work: medians with the range over the rounds. */
export interface Row {
  work: Work
  valuesPerSecond: Summary
  /** As a multiple of the same kind (reading or writing) one command at a time, round by round. */
  ratio: Summary
  mainMicrosPerValue: Summary
  /** Values per second at which the main thread would be busy all the time. */
  ceiling: number
  readsPerValue: Summary
  p50: Summary
  p99: Summary
  redisDemand: Summary
  generatorDemand: Summary | null
  /** Whether the generator was at its limit in any round. */
  generatorAtLimit: boolean
}

const isReading = ({ command: [name] }: Work) => name === 'GET' || name === 'MGET'

/**
 * @param runsOf the runs of a work, in the order of the rounds.
 * @throws RangeError when a work has no runs, or there is none that sends one command at a time.
 */
export function summarizeRuns(
  works: readonly Work[],
  runsOf: (work: Work) => readonly Run[],
): Row[] {
  return works.map((work) => {
    const runs = runsOf(work)
    const single = works.find(
      (one) => one.pipeline === 1 && one.keys === 1 && isReading(one) === isReading(work),
    )
    const rates = (list: readonly Run[]) => list.map(({ valuesPerSecond }) => valuesPerSecond)
    const over = (value: (run: Run) => number) => summarize(runs.map(value))
    const demands = runs.flatMap(({ generatorDemand }) => generatorDemand ?? [])
    const generatorDemand = demands.length > 0 ? summarize(demands) : null
    const mainMicrosPerValue = over((run) => run.mainMicrosPerValue)
    return {
      work,
      valuesPerSecond: over((run) => run.valuesPerSecond),
      ratio: summarize(pairwiseRatios(rates(runs), single ? rates(runsOf(single)) : [])),
      mainMicrosPerValue,
      ceiling: 1e6 / mainMicrosPerValue.median,
      readsPerValue: over((run) => run.readsPerValue),
      p50: over((run) => run.p50),
      p99: over((run) => run.p99),
      redisDemand: over((run) => run.redisDemand),
      generatorDemand,
      generatorAtLimit: (generatorDemand?.max ?? 0) >= GENERATOR_LIMIT,
    }
  })
}
