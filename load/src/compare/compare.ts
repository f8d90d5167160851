import { readFile } from 'node:fs/promises'
import { readHttpResult } from '../http/read-result.ts'
import type { HttpResult } from '../http/result.ts'
import { Problem } from '../problem.ts'
import { print } from '../terminal.ts'
import { commonVariants, differencesOf } from './circumstances.ts'
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
  const result = readHttpResult(parsed(await textOf(name), name), name)
  requireRounds(result, name)
  return { name, result }
}

async function textOf(name: string): Promise<string> {
  try {
    return await readFile(name, 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const why = code === 'ENOENT' ? 'there is no such file' : message
    throw new Problem(`${name} cannot be read: ${why}.`)
  }
}

function parsed(text: string, name: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Problem(`${name} is no JSON: ${(error as Error).message}.`)
  }
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
  const variants = commonVariants(before.result, after.result)
  if (variants.length === 0) {
    throw new Problem(
      `${before.name} has none of the variants ${after.result.options.variants.join(', ')}, but ` +
        `${before.result.options.variants.join(', ')}: nothing can be compared.`,
    )
  }
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
