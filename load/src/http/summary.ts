import type { Variant } from '../contenders.ts'
import { type Latency, percentiles } from '../drivers/http/generator.ts'
import { DISTURBED } from '../measure/machine-cpu.ts'
import {
  pairwiseRatios,
  type Ratio,
  type Summary,
  summarize,
  summarizeRatios,
} from '../statistics.ts'
import type { Sample } from './sample.ts'

/** From this share of busy time on, the generator may have been what limited a run. */
export const GENERATOR_LIMIT = 0.95

/** All runs of one variant: each figure is the median (with the range) over the rounds. */
export interface VariantSummary {
  variant: Variant
  requestsPerSecond: Summary
  /** Milliseconds; null where no round has a figure. */
  latency: Record<keyof Latency, Summary | null>
  /** Summed over the rounds, most frequent first. */
  errors: Record<string, number>
  /** Requests answered with 2xx, in all rounds. */
  ok: number
  connections: Summary
  commands: Summary
  roundTrips: Summary
  generatorCpuMicros: Summary
  apiCpuMicros: Summary
  redisCpuMicros: Summary
  /** Over HTTP, per answered request; null where no round has a figure. */
  bytesSent: Summary | null
  bytesReceived: Summary | null
  /**
   * Requests/s as a multiple of each reference, pair by pair. None of itself, none where the generator
   * was at its limit, with this variant or with the reference, and none if a round had no answer.
   */
  ratios: Partial<Record<Variant, Ratio>>
  generatorUtilization: Summary
  /** Whether the generator was at its limit in any round. */
  generatorAtLimit: boolean
  /** The highest share of the machine's CPU time that went elsewhere, of all rounds; 0 if not told. */
  elsewhere: number
}

/** Whether other programs, or other guests of the host, took much of the CPU in any round. */
export const isDisturbed = ({ elsewhere }: VariantSummary): boolean => elsewhere >= DISTURBED

const usualReferences: readonly Variant[] = ['naive', 'naive-lean', 'pipeline', 'noop']

/** The variants that the others are compared with: the usual ones, or else the first. */
export function referencesOf(variants: readonly Variant[]): Variant[] {
  const references = usualReferences.filter((reference) => variants.includes(reference))
  return references.length > 0 ? references : variants.slice(0, 1)
}

/** @throws RangeError when a variant has no samples. */
export function summarizeSamples(
  samples: readonly Sample[],
  variants: readonly Variant[],
): VariantSummary[] {
  const summaries = variants.map((variant) => summarizeVariant(inRounds(samples, variant)))
  const comparable = summaries.filter(({ generatorAtLimit }) => !generatorAtLimit)
  const references = referencesOf(variants)
  for (const { variant: reference } of comparable) {
    if (!references.includes(reference)) continue
    const base = rates(inRounds(samples, reference))
    for (const { variant, ratios } of comparable) {
      if (variant === reference) continue
      const multiples = pairwiseRatios(rates(inRounds(samples, variant)), base)
      if (multiples.length > 0 && multiples.every((ratio) => ratio > 0)) {
        ratios[reference] = summarizeRatios(multiples)
      }
    }
  }
  return summaries
}

const figures = [
  ...(Object.keys(percentiles) as (keyof typeof percentiles)[]),
  'max',
  'mean',
] as const

const inRounds = (samples: readonly Sample[], variant: Variant) =>
  samples.filter((sample) => sample.variant === variant).toSorted((a, b) => a.round - b.round)

const rates = (runs: readonly Sample[]) => runs.map(({ requestsPerSecond }) => requestsPerSecond)

function summarizeVariant(runs: readonly Sample[]): VariantSummary {
  const [first] = runs
  if (!first) throw new RangeError('no samples')
  const over = (value: (sample: Sample) => number) => summarize(runs.map(value))
  const known = (value: (sample: Sample) => number | null) => {
    const values = runs.map(value).filter((each) => each !== null)
    return values.length > 0 ? summarize(values) : null
  }
  const generatorUtilization = over(({ generator }) => generator.utilization)
  return {
    variant: first.variant,
    requestsPerSecond: summarize(rates(runs)),
    latency: Object.fromEntries(
      figures.map((name) => [name, known(({ latency }) => latency[name])]),
    ) as VariantSummary['latency'],
    errors: addUp(runs.map(({ errors }) => errors)),
    ok: runs.reduce((sum, { ok }) => sum + ok, 0),
    connections: over(({ perRequest }) => perRequest.connections),
    commands: over(({ perRequest }) => perRequest.commands),
    roundTrips: over(({ perRequest }) => perRequest.roundTrips),
    generatorCpuMicros: over(({ perRequest }) => perRequest.generatorCpuMicros),
    apiCpuMicros: over(({ perRequest }) => perRequest.apiCpuMicros),
    redisCpuMicros: over(({ perRequest }) => perRequest.redisCpuMicros),
    bytesSent: known(({ perRequest }) => perRequest.bytesSent),
    bytesReceived: known(({ perRequest }) => perRequest.bytesReceived),
    ratios: {},
    generatorUtilization,
    generatorAtLimit: generatorUtilization.max >= GENERATOR_LIMIT,
    elsewhere: Math.max(...runs.map(({ elsewhere }) => elsewhere ?? 0)),
  }
}

/** The counts of several runs, most frequent first. */
export function addUp(counts: readonly Record<string, number>[]): Record<string, number> {
  const total = new Map<string, number>()
  for (const [kind, count] of counts.flatMap((each) => Object.entries(each))) {
    total.set(kind, (total.get(kind) ?? 0) + count)
  }
  return Object.fromEntries([...total].toSorted(([, a], [, b]) => b - a))
}
