import { GENERATOR_LIMIT } from '@onetrip/stack/measure/generator-limit.ts'
import { latencyAt, type Percentile, shareOf, together } from '@onetrip/stack/measure/latencies.ts'
import type { Doubt } from '../../experiment/shape.ts'
import { seriesOf } from '../../measure/series.ts'
import { usageOf } from '../../measure/usage.ts'
import type { PacedGenerator } from '../pacer/pacer.ts'
import type { HttpBench } from './bench.ts'
import type { Api } from './target.ts'

export const pacedDoubts: Readonly<Record<string, Doubt>> = {
  late: {
    mark: '*',
    text: 'Requests were sent too late although a connection was free: nothing is claimed from these rows. Lower rates, or a machine with more cores, may help.',
  },
  generator: {
    mark: '**',
    text: `The thread that sends was busy ${GENERATOR_LIMIT * 100} % of the time or more: nothing is claimed from these rows.`,
  },
}

/** The value of a percentile among the requests that failed or were not sent. */
export const FAILED = Number.POSITIVE_INFINITY

/** Whether requests were sent so late that the latencies may be the generator's. Both in milliseconds. */
export const isLate = (late: number, p99: number | null) => late > 1 && late > 0.2 * (p99 ?? 0)

/**
 * Sends requests when they are due, and reads before and after what that took.
 *
 * @returns `percentile` counts what failed or was not sent as slower than all others (`FAILED`), and gives null
 *   when fewer than ten requests are beyond it; `late` is the 99th percentile of the delay of sending.
 * @throws Problem when the API takes no connections or does not report; the reason of `signal`.
 */
export async function runPaced(
  bench: HttpBench & { generator: PacedGenerator },
  api: Api,
  { schedule, signal }: { schedule: Float64Array; signal: AbortSignal },
) {
  const { generator, monitor, owned, foreign } = bench
  const { url } = api
  const { result: run, cost } = await usageOf({ url, monitor, foreign, signal }, () =>
    generator.run({ url, owned, calls: bench.calls(api), schedule }),
  )
  const { due, ok, notSent } = run
  const latencies = together([run.latencies])
  const percentile = (name: Percentile) => latencyAt(latencies, shareOf(name), due)
  // Of those for which a connection was free.
  const lateness = together([run.lateness])
  const late = lateness.totalCount === 0 ? 0 : lateness.getValueAtPercentile(99) / 1_000
  const errors: Record<string, number> = {
    ...(notSent > 0 && { 'not sent': notSent }),
    ...run.errors,
  }
  return {
    ...{
      due,
      ok,
      errors,
      percentile,
      late,
      cost,
      latencies: run.latencies,
      series: seriesOf(run.samples),
    },
    max: ok > 0 ? latencies.maxValue / 1_000 : null,
    doubts: isLate(late, percentile('p99')) ? [...cost.doubts, 'late'] : cost.doubts,
  }
}
