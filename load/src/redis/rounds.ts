import { orderOf } from '../http/summary.ts'
import type { Context } from './experiment.ts'

export interface Rounds<Variant, Sample> {
  variants: readonly Variant[]
  rounds: number
  /** What is run, for the progress line. */
  label: (variant: Variant) => string
  /** One run; its sample is what the summaries are made of. */
  measure: (variant: Variant, round: number) => Promise<Sample>
  /** The sample in a few words. */
  describe: (sample: Sample) => string
}

/** A sample, of which variant, and of which round (from 1). */
export interface Taken<Variant, Sample> {
  variant: Variant
  round: number
  sample: Sample
}

/**
 * Runs every variant once per round, in changing order, so that slow drifts of the machine meet all
 * alike.
 *
 * @throws whatever `measure` throws; the reason of the context's signal, which explains it better.
 */
export async function interleave<Variant, Sample>(
  { signal, progress }: Pick<Context, 'signal' | 'progress'>,
  { variants, rounds, label, measure, describe }: Rounds<Variant, Sample>,
): Promise<Taken<Variant, Sample>[]> {
  const taken: Taken<Variant, Sample>[] = []
  const width = Math.max(...variants.map((variant) => label(variant).length))
  for (let round = 1; round <= rounds; round++) {
    for (const variant of orderOf(variants, round - 1)) {
      signal.throwIfAborted()
      progress.begin(`Round ${round}/${rounds}  ${label(variant).padEnd(width)}`)
      try {
        const sample = await measure(variant, round)
        signal.throwIfAborted()
        progress.end(describe(sample))
        taken.push({ variant, round, sample })
      } catch (error) {
        signal.throwIfAborted()
        throw error
      }
    }
  }
  return taken
}

/** The samples of one variant, in the order of the rounds. */
export function samplesOf<Variant, Sample>(
  taken: readonly Taken<Variant, Sample>[],
  variant: Variant,
): Sample[] {
  return taken
    .filter((one) => one.variant === variant)
    .toSorted((a, b) => a.round - b.round)
    .map(({ sample }) => sample)
}
