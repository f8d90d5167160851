import type { Variant } from '../stack/api.ts'
import { pairwiseRatios, type Summary, summarize } from '../statistics.ts'
import type { Sample } from './sample.ts'

/** From this share of busy time on, the generator may have been what limited a run. */
export const GENERATOR_LIMIT = 0.95

/** All runs of one variant: each figure is the median (with the range) over the rounds. */
export interface VariantSummary {
  variant: Variant
  requestsPerSecond: Summary
  /** Milliseconds. */
  p50: Summary
  p99: Summary
  /** Summed over the rounds, most frequent first. */
  errors: Record<string, number>
  /** Requests answered with 2xx, in all rounds. */
  ok: number
  connections: Summary
  commands: Summary
  roundTrips: Summary
  apiCpuMicros: Summary
  redisCpuMicros: Summary
  /** Requests/s as a multiple of the reference, pair by pair; null for the reference itself. */
  ratio: Summary | null
  generatorUtilization: Summary
  /** Whether the generator was at its limit in any round. */
  generatorAtLimit: boolean
}

/** The variant that the others are compared with: naive, or else the first. */
export function referenceOf(variants: readonly Variant[]): Variant | undefined {
  return variants.find((variant) => variant === 'naive') ?? variants[0]
}

/** @throws RangeError when a variant has no samples. */
export function summarizeSamples(
  samples: readonly Sample[],
  variants: readonly Variant[],
): VariantSummary[] {
  const reference = referenceOf(variants)
  const inRounds = (variant: Variant | undefined) =>
    samples.filter((sample) => sample.variant === variant).toSorted((a, b) => a.round - b.round)
  const rates = (runs: readonly Sample[]) => runs.map(({ requestsPerSecond }) => requestsPerSecond)
  const base = rates(inRounds(reference))
  return variants.map((variant) => {
    const runs = inRounds(variant)
    const over = (value: (sample: Sample) => number) => summarize(runs.map(value))
    const ratios = variant === reference ? [] : pairwiseRatios(rates(runs), base)
    const generatorUtilization = over(({ generator }) => generator.eventLoopUtilization)
    return {
      variant,
      requestsPerSecond: summarize(rates(runs)),
      p50: over(({ latency }) => latency.p50),
      p99: over(({ latency }) => latency.p99),
      errors: addUp(runs.map(({ errors }) => errors)),
      ok: runs.reduce((sum, { ok }) => sum + ok, 0),
      connections: over(({ perRequest }) => perRequest.connections),
      commands: over(({ perRequest }) => perRequest.commands),
      roundTrips: over(({ perRequest }) => perRequest.roundTrips),
      apiCpuMicros: over(({ perRequest }) => perRequest.apiCpuMicros),
      redisCpuMicros: over(({ perRequest }) => perRequest.redisCpuMicros),
      ratio: ratios.length > 0 ? summarize(ratios) : null,
      generatorUtilization,
      generatorAtLimit: generatorUtilization.max >= GENERATOR_LIMIT,
    }
  })
}

function addUp(counts: readonly Record<string, number>[]): Record<string, number> {
  const total = new Map<string, number>()
  for (const [kind, count] of counts.flatMap((each) => Object.entries(each))) {
    total.set(kind, (total.get(kind) ?? 0) + count)
  }
  return Object.fromEntries([...total].toSorted(([, a], [, b]) => b - a))
}

/**
 * The order in which a round runs the variants: rotated by one every other round and reversed in
 * between, so that over the rounds each comes early and late, and before and after each other one.
 *
 * @param round 0 for the first.
 */
export function orderOf<T>(variants: readonly T[], round: number): T[] {
  const shift = Math.floor(round / 2) % variants.length
  const rotated = [...variants.slice(shift), ...variants.slice(0, shift)]
  return round % 2 === 0 ? rotated : rotated.reverse()
}
