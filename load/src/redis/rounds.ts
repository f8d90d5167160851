import { type RoundsPlan, type RoundsRun, runRounds } from '../experiment/rounds.ts'
import type { Context } from './experiment.ts'

type Rounds<Variant, Sample> = Omit<RoundsPlan<Variant, Sample>, 'warmUp'>

/** A sample, of which variant, and of which round (from 1). */
export interface Taken<Variant, Sample> {
  variant: Variant
  round: number
  sample: Sample
}

type RoundsContext = Pick<Context, 'interrupt' | 'signal' | 'progress'>

/**
 * Runs every variant once per round, in changing order (see `runRounds`), for what needs all rounds.
 *
 * @throws whatever `measure` throws; the reason of the context's signal, which explains it better.
 */
export async function interleave<Variant, Sample>(
  context: RoundsContext,
  plan: Rounds<Variant, Sample>,
): Promise<Taken<Variant, Sample>[]> {
  const { samples, early } = await completeRounds(context, plan)
  if (early) throw early.reason
  return samples
}

/**
 * The same for what makes sense of fewer rounds.
 *
 * @throws the same, when no round is complete.
 */
async function completeRounds<Variant, Sample>(
  context: RoundsContext,
  { measure, describe, ...plan }: Rounds<Variant, Sample>,
): Promise<RoundsRun<Taken<Variant, Sample>>> {
  return await runRounds(context, {
    ...plan,
    measure: async (variant, round) => ({
      variant,
      round,
      sample: await measure(variant, round),
    }),
    describe: ({ sample }) => describe(sample),
  })
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
