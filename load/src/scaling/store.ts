import type { RunProgress } from '../experiment/progress.ts'
import type { EarlyEnd } from '../experiment/rounds.ts'
import { measureLinks } from '../store/benchmark.ts'
import { describeLink } from '../store/links.ts'
import { documentsTable } from '../store/report.ts'
import type { TextTable } from '../table.ts'
import type { Bench } from './bench.ts'
import type { ScalingOptions } from './options.ts'
import type { ScalingResult } from './result.ts'

/** One caller has done enough calls by then, in seconds. */
const MOST_S = 0.5

interface DistantStore {
  store: NonNullable<ScalingResult['store']>
  table: TextTable | undefined
  early: EarlyEnd | null
}

/** As `npm run load -- store` does, with a Redis of its own that keeps nothing on disk. */
export async function measureStore(
  bench: Bench,
  options: ScalingOptions,
  progress: RunProgress,
  cleanup: AsyncDisposableStack,
): Promise<DistantStore> {
  const defer = (undo: () => unknown) => cleanup.defer(async () => void (await undo()))
  const { interrupt, signal, startRedis } = bench
  const { results, samples, early } = await measureLinks(
    { interrupt, signal, startRedis, progress, defer },
    {
      operation: 'update-token',
      strategies: ['sequential', 'pipeline'],
      links: options.links,
      concurrency: 1,
      poolSizes: [1],
      ioThreads: [1],
      rounds: options.rounds,
      duration: Math.min(MOST_S, options.duration),
    },
  )
  const links = results.map(({ plan, pingMs: [pingMs = Number.NaN], rows }) => ({
    link: plan.name,
    linkText: describeLink(plan),
    pingMs,
    rows: [...rows],
  }))
  return { store: { links, samples }, table: documentsTable(results), early }
}
