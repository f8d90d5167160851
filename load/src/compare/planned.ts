import { print } from '@onetrip/stack/terminal.ts'
import type { Facts } from './comparable.ts'
import { baselineOf, printComparison, readBaseline, requireComparable } from './compare.ts'
import type { ComparisonOptions } from './options.ts'

/** What a command that measures is to be compared with. */
export interface PlannedComparison {
  /** The older result, as it was saved. */
  document: unknown
  /**
   * Prints what got better or worse.
   *
   * @returns whether something got worse.
   * @throws Problem when it cannot be compared.
   */
  finish(result: unknown): boolean
}

/**
 * Reads the file of `--compare`, and makes sure that what is going to be measured can be compared with it.
 *
 * @param part as on the command line: `latency`.
 * @returns null where nothing is to be compared.
 * @throws Problem when it cannot.
 */
export async function plannedComparison(
  part: string,
  { compare, threshold }: ComparisonOptions,
  wanted: { rounds: number; variants: readonly string[]; load: Facts },
): Promise<PlannedComparison | null> {
  if (compare === undefined) return null
  const baseline = await readBaseline(compare, part)
  requireComparable(baseline, wanted)
  return {
    document: baseline.parts[0]?.document,
    finish(result) {
      print()
      return printComparison(baseline, baselineOf('This run', result), threshold)
    },
  }
}
