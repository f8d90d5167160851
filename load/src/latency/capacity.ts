import { print } from '@onetrip/stack/terminal.ts'
import type { Variant } from '../contenders.ts'
import { saturateByAutocannon } from '../drivers/http/autocannon.ts'
import type { Stand } from '../drivers/http/stand.ts'
import type { Target } from '../drivers/http/target.ts'
import { workload } from '../drivers/http/workload.ts'
import type { RunProgress } from '../experiment/progress.ts'
import { runRounds } from '../experiment/rounds.ts'
import { requireAnswers, takeSample } from '../http/sample.ts'
import { packageVersion } from '../measure/package-version.ts'
import { type Summary, summarize } from '../statistics.ts'
import { figure } from '../table.ts'
import type { LatencyOptions } from './options.ts'
import { capacityLine } from './report.ts'
import type { Capacity, LatencyRate, LatencySettings } from './result.ts'

/** What all runs of a command need. */
export interface Runs {
  stand: Stand
  options: LatencySettings
  tokens: ReadonlyMap<Variant, readonly string[]>
  owned: boolean
  interrupt: AbortSignal
  progress: RunProgress
}

export type Api = Target['apis'][number]

/** What each connection sends to an API. */
export const callsFor = ({ options, tokens }: Runs, { variant }: Api) =>
  workload({ ...options, tokens: tokens.get(variant) ?? [] })

const CAPACITY_ROUNDS = 2
const CAPACITY_S = 2

/**
 * What each variant can do at full speed.
 *
 * @throws Problem when a variant answers nothing; the reason of the interrupt.
 */
export async function capacityOf(runs: Runs): Promise<Capacity> {
  const { stand, options, owned, interrupt, progress } = runs
  const { monitor, signal, target, variants } = stand
  print('What each variant can do at full speed:')
  const { samples, early } = await runRounds(
    { interrupt, signal, progress },
    {
      variants: target.apis,
      rounds: options.rounds === 1 ? 1 : CAPACITY_ROUNDS,
      label: ({ variant }) => variant,
      async measure(api, round) {
        const sample = await takeSample({
          ...api,
          round,
          monitor,
          calls: callsFor(runs, api),
          saturate: saturateByAutocannon,
          owned,
          seconds: Math.min(CAPACITY_S, options.duration),
          signal,
          onProgress(now) {
            progress.update(`${figure(now.requestsPerSecond)} requests/s`)
            stand.watch(api.url, now)
          },
        })
        requireAnswers(sample)
        return sample
      },
      describe: ({ requestsPerSecond }) => `${figure(requestsPerSecond)} requests/s`,
    },
  )
  if (early) throw early.reason
  const requestsPerSecond: Partial<Record<Variant, Summary>> = {}
  for (const variant of variants) {
    const own = samples.filter((sample) => sample.variant === variant)
    requestsPerSecond[variant] = summarize(own.map((sample) => sample.requestsPerSecond))
  }
  const median = (variant: Variant) => requestsPerSecond[variant]?.median ?? 0
  const slowest = variants.reduce((a, b) => (median(b) < median(a) ? b : a))
  const capacity = { generator: await packageVersion('autocannon'), requestsPerSecond, slowest }
  print(`\n${capacityLine(capacity)}\n`)
  return capacity
}

/** The rates that are wanted, in growing order, each once: of little, several shares may be the same rate. */
export function ratesOf(wanted: LatencyOptions, capacity: Capacity | null): LatencyRate[] {
  const all = capacity?.requestsPerSecond[capacity.slowest]?.median ?? 0
  const rates: LatencyRate[] = wanted.rate
    ? wanted.rate.map((requestsPerSecond) => ({ share: null, requestsPerSecond }))
    : wanted.shares.map((percent) => ({
        share: percent / 100,
        requestsPerSecond: Math.max(1, Math.round((all * percent) / 100)),
      }))
  const different = new Map(rates.map((rate) => [rate.requestsPerSecond, rate]))
  return [...different.values()].toSorted((a, b) => a.requestsPerSecond - b.requestsPerSecond)
}
