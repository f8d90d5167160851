import { availableParallelism } from 'node:os'
import { step } from '@onetrip/stack/terminal.ts'
import type { Variant } from '../contenders.ts'
import type { Generator } from '../drivers/http/generators.ts'
import { logIn } from '../drivers/http/sessions.ts'
import { workload } from '../drivers/http/workload.ts'
import type { RunProgress } from '../experiment/progress.ts'
import { type EarlyEnd, runRounds } from '../experiment/rounds.ts'
import { describeSample, requireAnswers, takeSample } from '../http/sample.ts'
import { summarizeSamples } from '../http/summary.ts'
import { counted, figure } from '../table.ts'
import type { Bench, RunningApi, WantedApi } from './bench.ts'
import type { ScalingOptions } from './options.ts'
import { isFar, linkText, type PlannedPoint, pointsOf, secondsAt } from './plan.ts'
import type { Dimension, ScalingPoint, ScalingSample, ScalingSeries } from './result.ts'

export interface SeriesContext {
  bench: Bench
  options: ScalingOptions
  generator: Generator
  progress: RunProgress
}

/** One variant at one point. */
interface Place {
  point: PlannedPoint
  api: RunningApi
}

/**
 * Measures what one dimension does. Its APIs are gone when it resolves or rejects. An interrupt,
 * or a failure, leaves the rounds that were complete.
 *
 * @throws Problem, ProgramError when it cannot be measured; the reason of the interrupt when no round
 *   was complete.
 */
export async function measureSeries(
  by: Dimension,
  context: SeriesContext,
): Promise<{ series: ScalingSeries; early: EarlyEnd | null }> {
  const { bench, options, progress } = context
  const points = pointsOf(by, options)
  const apis = new AsyncDisposableStack()
  await using cleanup = new AsyncDisposableStack()
  cleanup.defer(() => step('Stopping the APIs', () => apis.disposeAsync()))
  const places = await placesOf(points, bench, apis)
  const [near] = places
  if (!near) return { series: { by, points: [], samples: [] }, early: null }
  const { interrupt, signal } = bench
  const { tokens } = await step('Logging users in', () =>
    logIn(near.api.url, options.sessions, signal),
  )

  const take = async ({ point, api }: Place, seconds: number, round: number) => {
    const { connections, workers, link } = point
    const sample = await takeSample({
      ...{ variant: api.variant, url: api.url, round, seconds, signal },
      monitor: bench.monitor,
      calls: workload({ ...options, connections, tokens }),
      saturate: context.generator.saturate,
      owned: false,
      onProgress: (now) => progress.update(`${figure(now.requestsPerSecond)} requests/s`),
    })
    return { ...sample, connections, workers, link }
  }
  for (const place of options.warmup > 0 ? toWarmUp(places) : []) {
    signal.throwIfAborted()
    progress.begin(`Warm-up  ${label(by, place)}`)
    const sample = await take(place, options.warmup, 0)
    requireAnswers(sample, ` over ${sample.link}`)
    progress.end(describeSample(sample))
  }
  const { samples, early } = await runRounds(
    { interrupt, signal, progress },
    {
      variants: places,
      rounds: options.rounds,
      label: (place) => label(by, place),
      measure: (place, round) => take(place, secondsAt(place.point, options.duration), round),
      describe: describeSample,
    },
  )
  const pingMs = new Map(places.map(({ point, api }) => [point, api.pingMs]))
  return {
    series: {
      by,
      points: points.map((point) => pointResult(point, pingMs.get(point) ?? null, samples)),
      samples,
    },
    early,
  }
}

/** Starts an API for each variant, number of workers and link. */
async function placesOf(
  points: readonly PlannedPoint[],
  bench: Bench,
  cleanup: AsyncDisposableStack,
): Promise<Place[]> {
  const wanted = new Map<string, WantedApi>()
  const key = (variant: Variant, { workers, link }: PlannedPoint) => `${variant} ${workers} ${link}`
  for (const point of points) {
    const { url, pingMs } = await bench.openLink(point.plan)
    for (const variant of point.variants) {
      wanted.set(key(variant, point), { variant, workers: point.workers, redisUrl: url, pingMs })
    }
  }
  const started = await bench.startApis([...wanted.values()], cleanup)
  const running = new Map([...wanted.keys()].map((name, index) => [name, started[index]]))
  return points.flatMap((point) =>
    point.variants.flatMap((variant) => {
      const api = running.get(key(variant, point))
      return api ? [{ point, api }] : []
    }),
  )
}

/** One place for each API; none where a warm-up would be over before the first answer. */
function toWarmUp(places: readonly Place[]): Place[] {
  const first = new Map(places.toReversed().map((place) => [place.api, place]))
  return [...first.values()].toReversed().filter(({ point }) => !isFar(point))
}

function pointResult(
  planned: PlannedPoint,
  pingMs: number | null,
  samples: readonly ScalingSample[],
): ScalingPoint {
  const { connections, workers, link, variants } = planned
  const own = samples.filter(
    (sample) =>
      sample.connections === connections && sample.workers === workers && sample.link === link,
  )
  return {
    ...{ connections, workers, link, pingMs },
    linkText: linkText(planned),
    oversubscribed: workers + 1 > availableParallelism(),
    summaries: summarizeSamples(own, variants),
  }
}

function label(by: Dimension, { point, api }: Place): string {
  const where = {
    connections: counted(point.connections, 'connection'),
    workers: counted(point.workers, 'worker'),
    distance: point.link,
  }
  return `${where[by].padEnd(17)}  ${api.variant}`
}
