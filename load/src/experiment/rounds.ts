import { describeError, messageOf } from '@onetrip/stack/problem.ts'
import type { RunProgress } from './progress.ts'

/** What is to be run, over and over. */
export interface RoundsPlan<Variant, Sample> {
  variants: readonly Variant[]
  rounds: number
  /** The variant in a few words, for the progress line. */
  label: (variant: Variant) => string
  /** What is run before the first round. Default: all variants. */
  warmUps?: readonly Variant[]
  /** Runs a variant before the first round; its sample is only described. Default: no warm-up. */
  warmUp?: ((variant: Variant) => Promise<Sample>) | undefined
  /** One run, in a round from 1 on. */
  measure: (variant: Variant, round: number) => Promise<Sample>
  /** The sample in a few words. */
  describe: (sample: Sample) => string
}

interface Signals {
  /** Aborted by Ctrl-C. */
  interrupt: AbortSignal
  /** Aborted when it cannot go on, and by `interrupt`. */
  signal: AbortSignal
}

export interface RoundsContext extends Signals {
  progress: Pick<RunProgress, 'begin' | 'end'>
}

export interface RoundsRun<Sample> {
  /** Of complete rounds only, in the order in which they were taken. */
  samples: Sample[]
  early: EarlyEnd | null
}

/** Why rounds are missing: an interrupt, or something failed. */
export interface EarlyEnd {
  interrupted: boolean
  reason: unknown
}

/** What a result says of how its measurement ended. */
export interface Ending {
  /** Whether the user ended it early: then it has the rounds that were complete. */
  interrupted: boolean
  /** What went wrong before the last round; likewise. */
  failure?: string
}

export function endingOf(early: EarlyEnd | null): Ending {
  if (early === null || early.interrupted) return { interrupted: early !== null }
  const { reason } = early
  return { interrupted: false, failure: messageOf(reason) }
}

/** The same for a report; empty when no rounds are missing. */
export function endingText({ interrupted, failure }: Partial<Ending>): string[] {
  if (interrupted) return ['Interrupted: of the rounds that were complete.']
  if (failure === undefined) return []
  return [`Of the rounds that were complete when it failed: ${failure.split('\n', 1)[0]}`]
}

/** What to print above figures of fewer rounds than were wanted; empty when none are missing. */
export function earlyText(early: EarlyEnd | null): string {
  if (early === null) return ''
  if (early.interrupted) return 'Interrupted: this is of the rounds that are complete.\n'
  return `${describeError(early.reason)}\nSo this is of the rounds that are complete.\n`
}

/** @throws the reason, when it did not end by an interrupt. To be called when what there is was saved. */
export function throwFailure(early: EarlyEnd | null): void {
  if (early !== null && !early.interrupted) throw early.reason
}

/**
 * Runs every variant once per round, in changing order, so that slow drifts of the machine meet all
 * alike. An interrupt, or what makes a run fail, ends it with the rounds that are complete.
 *
 * @throws what a run throws, or the reason of `signal`, which explains it better, when no round is
 *   complete.
 */
export async function runRounds<Variant, Sample>(
  { interrupt, signal, progress }: RoundsContext,
  plan: RoundsPlan<Variant, Sample>,
): Promise<RoundsRun<Sample>> {
  const { variants, warmUps = variants, rounds, label, warmUp, measure, describe } = plan
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
    for (const variant of warmUps) {
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
    return { samples, early: null }
  } catch (error) {
    const early = await earlyEnd(error, { interrupt, signal })
    if (samples.length === 0) throw early.reason
    return { samples, early }
  }
}

/** In milliseconds: that a program has ended is known a moment after its connections have broken. */
const EXPLANATION_MS = 2_000

/** Why an error ended it: the reason of `signal` explains that better, if there soon is one. */
async function earlyEnd(error: unknown, { interrupt, signal }: Signals): Promise<EarlyEnd> {
  if (!signal.aborted) {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, EXPLANATION_MS)
    signal.addEventListener('abort', () => resolve(), { once: true })
    await promise
    clearTimeout(timer)
  }
  return { interrupted: interrupt.aborted, reason: signal.aborted ? signal.reason : error }
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
