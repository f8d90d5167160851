import { readHttpResult } from '../http/read-result.ts'
import type { HttpResult, HttpSettings } from '../http/result.ts'
import { Problem } from '../problem.ts'
import { type AllResult, readDocument } from '../report/read.ts'
import { print } from '../terminal.ts'
import { commonVariants, differencesOf, loadDifferences } from './circumstances.ts'
import { compareResults } from './judge.ts'
import { comparisonHeader, comparisonTable, verdicts } from './report.ts'

/** Exit code of a comparison that found something worse. */
export const REGRESSION = 4

/** Differences of fewer percent than this are not worth an alarm: two runs of the same differ as much. */
export const THRESHOLD_PERCENT = 10

/** A result that others are compared with. */
export interface Baseline {
  name: string
  result: HttpResult
}

/**
 * Reads a result of `npm run load -- http --json`, to be compared.
 *
 * @throws Problem when there is none, or it has only one round.
 */
export async function readBaseline(name: string): Promise<Baseline> {
  const { document } = await readDocument(name)
  const result = readHttpResult(httpPartOf(document, name), name)
  requireRounds(result, name)
  return { name, result }
}

/** The document itself, or the part about http of what `load all` wrote. */
function httpPartOf(document: unknown, name: string): unknown {
  const { format, parts } = (document ?? {}) as Partial<AllResult>
  if (format !== 'onetrip-load-all/1') return document
  const part = parts?.find((each) => each.format.startsWith('onetrip-load-http/'))
  if (part) return part
  throw new Problem(`${name} has no part about http.`)
}

/**
 * Makes sure, before anything is measured, that it can be compared with a baseline.
 *
 * @throws Problem when it cannot.
 */
export function requireComparable({ name, result }: Baseline, wanted: HttpSettings): void {
  if (wanted.rounds < 2) {
    throw new Problem('--compare needs --rounds 2 or more, to tell a change from noise.')
  }
  requireCommonVariant(name, result.options, wanted)
  const differences = loadDifferences(result.options, wanted)
  if (differences.length === 0) return
  throw new Problem(
    [`${name} was measured with another load:`, ...differences, 'Give the same options.'].join(
      '\n  ',
    ),
  )
}

function requireCommonVariant(name: string, before: HttpSettings, after: HttpSettings): void {
  if (commonVariants(before, after).length > 0) return
  throw new Problem(
    `${name} has none of the variants ${after.variants.join(', ')}, but ` +
      `${before.variants.join(', ')}: nothing can be compared.`,
  )
}

function requireRounds({ samples }: HttpResult, name: string): void {
  if (new Set(samples.map(({ round }) => round)).size >= 2) return
  throw new Problem(
    `${name} has one round: how much rounds differ from each other, it cannot tell. Take five.`,
  )
}

/**
 * Prints what got better or worse.
 *
 * @param after `name` is told where it is about something that is wrong with it.
 * @param thresholdPercent a smaller change is none.
 * @returns whether something got worse.
 * @throws Problem when the two cannot be compared.
 */
export function printComparison(
  before: Baseline,
  after: Baseline,
  thresholdPercent: number,
): boolean {
  requireRounds(after.result, after.name)
  requireCommonVariant(before.name, before.result.options, after.result.options)
  const threshold = thresholdPercent / 100
  const differences = differencesOf(before.result, after.result)
  const comparisons = compareResults(before.result, after.result, differences, threshold)
  print(comparisonHeader(before.result, after.result, before.name, differences))
  print(`\n${comparisonTable(comparisons)}\n`)
  if (differences.load.length > 0) {
    throw new Problem(
      `${before.name} was measured with another load (see above): repeat it with the same options.`,
    )
  }
  print(verdicts(before.result, after.result, comparisons, threshold))
  return comparisons.some(({ verdict }) => verdict === 'worse')
}
