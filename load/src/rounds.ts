import type { RunProgress } from './progress.ts'

/** What is to be run, over and over. */
export interface RoundsPlan<Variant, Sample> {
  variants: readonly Variant[]
  rounds: number
  /** The variant in a few words, for the progress line. */
  label: (variant: Variant) => string
  /** Runs a variant before the first round; its sample is only described. Default: no warm-up. */
  warmUp?: ((variant: Variant) => Promise<Sample>) | undefined
  /** One run, in a round from 1 on. */
  measure: (variant: Variant, round: number) => Promise<Sample>
  /** The sample in a few words. */
  describe: (sample: Sample) => string
}

export interface RoundsContext {
  /** Aborted by Ctrl-C: the rounds that are complete by then are kept. */
  interrupt: AbortSignal
  /** Aborted when it cannot go on, and by `interrupt`. */
  signal: AbortSignal
  progress: Pick<RunProgress, 'begin' | 'end'>
}

export interface RoundsRun<Sample> {
  /** Of complete rounds only, in the order in which they were taken. */
  samples: Sample[]
  interrupted: boolean
}

/**
 * Runs every variant once per round, in changing order, so that slow drifts of the machine meet all
 * alike. An interrupt ends it with the rounds that are complete; in the warm-up and in the first round
 * that is none.
 *
 * @throws what a run throws; the reason of `signal`, which explains it better, unless interrupted.
 */
export async function runRounds<Variant, Sample>(
  { interrupt, signal, progress }: RoundsContext,
  plan: RoundsPlan<Variant, Sample>,
): Promise<RoundsRun<Sample>> {
  const { variants, rounds, label, warmUp, measure, describe } = plan
  const width = Math.max(...variants.map((variant) => label(variant).length))
  const run = async (when: string, variant: Variant, take: () => Promise<Sample>) => {
    signal.throwIfAborted()
    const longest = `Round ${rounds}/${rounds}`.length
    progress.begin(`${when.padEnd(longest)}  ${label(variant).padEnd(width)}`, left())
    const sample = await take()
    signal.throwIfAborted()
    progress.end(describe(sample))
    return sample
  }

  const samples: Sample[] = []
  let startedAt = performance.now()
  let done = 0
  const left = () => {
    if (done === 0) return ''
    const each = (performance.now() - startedAt) / done
    return timeLeft(each * (rounds * variants.length - done))
  }
  try {
    for (const variant of warmUp ? variants : []) {
      if (warmUp) await run('Warm-up', variant, () => warmUp(variant))
    }
    startedAt = performance.now()
    for (let round = 1; round <= rounds; round++) {
      const taken: Sample[] = []
      for (const variant of orderOf(variants, round - 1)) {
        taken.push(await run(`Round ${round}/${rounds}`, variant, () => measure(variant, round)))
        done += 1
      }
      samples.push(...taken)
    }
    return { samples, interrupted: false }
  } catch (error) {
    if (interrupt.aborted) return { samples, interrupted: true }
    signal.throwIfAborted()
    throw error
  }
}

/** `40 s left`, `3 min left`. */
function timeLeft(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1_000)
  return seconds < 100 ? `${seconds} s left` : `${Math.round(seconds / 60)} min left`
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
