import type { HttpResult } from '../http/result.ts'
import type { Sample } from '../http/sample.ts'
import { referencesOf } from '../http/summary.ts'
import type { Variant } from '../stack/api.ts'
import { type Change, changeBetween, median, summarizeRatios } from '../statistics.ts'
import { commonVariants, type Differences } from './circumstances.ts'
import { type Measure, measures } from './measures.ts'

/**
 * `better` and `worse`: by the threshold or more, and beyond noise. `same`: it did not get worse by as
 * much as the threshold, beyond noise. `unclear`: the rounds scatter too much to tell. `told`: not judged,
 * because it depends on more than on what is compared.
 */
type Verdict = 'better' | 'worse' | 'same' | 'unclear' | 'told'

/** One figure of one variant, before and after. */
export interface Comparison {
  variant: Variant
  measure: Measure
  /** Whose figure of the same round this one is a multiple of; null where it stands by itself. */
  reference: Variant | null
  /** Over the rounds: geometric means, of which one is the change from the other. */
  before: number
  after: number
  change: Change
  verdict: Verdict
}

/** Of the interval in which a change is: many are looked at together, and few shall be wrong. */
export const CONFIDENCE = 0.99

/**
 * Compares two results, variant by variant. What depends on the pace of the machine is judged as a
 * multiple of a reference that ran in the same rounds, where both results have one.
 *
 * @param threshold a smaller change is none: 0.1 for 10 %.
 */
export function compareResults(
  before: HttpResult,
  after: HttpResult,
  differences: Differences,
  threshold: number,
): Comparison[] {
  const variants = commonVariants(before.options, after.options)
  const reference = referenceOf(before, after)
  const limited = new Set(
    [before, after].flatMap(({ summaries }) =>
      summaries.flatMap(({ variant, generatorAtLimit }) => (generatorAtLimit ? [variant] : [])),
    ),
  )
  const isJudged = (measure: Measure, variant: Variant, base: Variant | null) => {
    if (differences.load.length > 0) return false
    if (measure.kind === 'count') return true
    if (differences.disturbance.length > 0) return false
    if (measure.kind === 'cpu') return differences.machine.length === 0
    return base === reference && !limited.has(variant) && (base === null || !limited.has(base))
  }
  return variants.flatMap((variant) =>
    measures.flatMap((measure) => {
      const relative = measure.kind === 'pace' && reference !== null && variant !== reference
      const bases = relative ? [null, reference] : [null]
      return bases.flatMap((base) => {
        const old = figuresOf(before.samples, variant, measure, base)
        const now = figuresOf(after.samples, variant, measure, base)
        if (old.length < 2 || now.length < 2) return []
        const least = base === null ? measure.least : 0
        const atLeast = (figures: number[]) => figures.map((each) => Math.max(least, each))
        const change = changeBetween(atLeast(old), atLeast(now), CONFIDENCE)
        const judged = isJudged(measure, variant, base)
        const verdict = judged ? verdictOf(change, measure, threshold) : ('told' as const)
        const means = { before: meanOf(old), after: meanOf(now) }
        return [{ variant, measure, reference: base, ...means, change, verdict }]
      })
    }),
  )
}

/** The variant whose pace those of the others are compared with; null where there are no others. */
export function referenceOf(before: HttpResult, after: HttpResult): Variant | null {
  const variants = commonVariants(before.options, after.options)
  return variants.length > 1 ? (referencesOf(variants)[0] ?? null) : null
}

/** The geometric mean; the median where a round has nothing at all. */
function meanOf(figures: readonly number[]): number {
  return figures.every((figure) => figure > 0) ? summarizeRatios(figures).mean : median(figures)
}

/** What a measure is in each round; with a base, as a multiple of the base's in the same round. */
function figuresOf(
  samples: readonly Sample[],
  variant: Variant,
  measure: Measure,
  base: Variant | null,
): number[] {
  const figureIn = (round: number, of: Variant) => {
    const sample = samples.find((each) => each.variant === of && each.round === round)
    return sample ? measure.of(sample) : null
  }
  return samples
    .filter((sample) => sample.variant === variant)
    .flatMap(({ round }) => {
      const figure = figureIn(round, variant)
      const below = base === null ? 1 : figureIn(round, base)
      // Without a single answer there is no pace to be a multiple of.
      if (figure === null || below === null || below === 0) return []
      return base !== null && figure === 0 ? [] : [figure / below]
    })
}

function verdictOf(change: Change, { better }: Measure, threshold: number): Verdict {
  const { mean, interval } = change
  const { low, high } = interval
  // 10 % slower is 10 % more time for a request: of rates, it is the inverse that counts.
  const cost =
    better === 'lower' ? { mean, low, high } : { mean: 1 / mean, low: 1 / high, high: 1 / low }
  if (cost.low > 1 && cost.mean >= 1 + threshold) return 'worse'
  if (cost.high < 1 && 1 / cost.mean >= 1 + threshold) return 'better'
  return cost.high < 1 + threshold ? 'same' : 'unclear'
}
