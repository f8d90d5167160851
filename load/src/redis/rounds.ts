import { type RoundsPlan, runRounds } from '../rounds.ts'
import type { Context } from './experiment.ts'

type Rounds<Variant, Sample> = Omit<RoundsPlan<Variant, Sample>, 'warmUp'>

/** A sample, of which variant, and of which round (from 1). */
export interface Taken<Variant, Sample> {
  variant: Variant
  round: number
  sample: Sample
}

/**
 * Runs every variant once per round, in changing order (see `runRounds`).
 *
 * @throws whatever `measure` throws; the reason of the context's signal, which explains it better.
 */
export async function interleave<Variant, Sample>(
  { signal, progress }: Pick<Context, 'signal' | 'progress'>,
  { measure, describe, ...plan }: Rounds<Variant, Sample>,
): Promise<Taken<Variant, Sample>[]> {
  const { samples } = await runRounds(
    { interrupt: signal, signal, progress },
    {
      ...plan,
      measure: async (variant, round) => ({
        variant,
        round,
        sample: await measure(variant, round),
      }),
      describe: ({ sample }) => describe(sample),
    },
  )
  signal.throwIfAborted() // an experiment needs all of its rounds
  return samples
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
