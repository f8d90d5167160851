import { describeError, Problem } from '@onetrip/stack/problem.ts'
import { print } from '@onetrip/stack/terminal.ts'
import type { LatencyResult } from '../latency/result.ts'
import { ALL, type AllResult, readDocument } from '../report/read.ts'
import { commonRows, differ, differencesOf } from './circumstances.ts'
import type { Comparable, Facts } from './comparable.ts'
import { judge } from './judge.ts'
import { comparableHttp, comparableLatency, comparableStore, type StoreResult } from './parts.ts'
import { comparisonHeader, comparisonTable, verdicts } from './report.ts'

/** Exit code of a comparison that found something worse. */
export const REGRESSION = 4

/** Differences of fewer percent than this are not worth an alarm: two runs of the same differ as much. */
export const THRESHOLD_PERCENT = 10

/** Results that are compared with others. */
export interface Baseline {
  name: string
  parts: { comparable: Comparable; document: unknown }[]
}

/**
 * Reads results that `--json` wrote, to be compared.
 *
 * @param part the one that is wanted: `latency`. Default: any.
 * @throws Problem when there is none, or it has only one round.
 */
export async function readBaseline(name: string, part?: string): Promise<Baseline> {
  const baseline = baselineOf(name, (await readDocument(name)).document)
  if (part === undefined) return baseline
  const parts = baseline.parts.filter(({ comparable }) => comparable.part === part)
  if (parts.length === 0) {
    const has = baseline.parts.map(({ comparable }) => comparable.part).join(', ')
    throw new Problem(`${name} has no part about ${part}, only about ${has}.`)
  }
  for (const { comparable } of parts) requireRounds(name, comparable)
  return { name, parts }
}

/** @throws Problem when nothing in the document can be compared. */
export function baselineOf(name: string, document: unknown): Baseline {
  const { format, parts } = (document ?? {}) as Partial<AllResult>
  const documents: readonly unknown[] = format === ALL && Array.isArray(parts) ? parts : [document]
  const found = documents.flatMap((one) => {
    const comparable = comparableOf(one, name)
    return comparable ? [{ comparable, document: one }] : []
  })
  if (found.length > 0) return { name, parts: found }
  throw new Problem(
    `${name} has nothing that can be compared: that are results of http, latency and store.`,
  )
}

/** Null for a result that is of another kind. */
function comparableOf(document: unknown, name: string): Comparable | null {
  const { format, experiment } = (document ?? {}) as { format?: unknown; experiment?: unknown }
  try {
    if (format === 'onetrip-load-latency/1') return comparableLatency(document as LatencyResult)
    if (format === 'onetrip-load-redis/1') {
      return experiment === 'store' ? comparableStore(document as StoreResult) : null
    }
  } catch (error) {
    // What is read relies on what the format promises.
    const what = error instanceof Error ? error.message : String(error)
    throw new Problem(`${name} says that it is ${format}, but something in it is not: ${what}.`)
  }
  return comparableHttp(document, name)
}

/**
 * Makes sure, before anything is measured, that it can be compared with a baseline of one part.
 *
 * @param wanted as the part's rows and `load` will be, as far as options say.
 * @throws Problem when it cannot.
 */
export function requireComparable(
  { name, parts: [part] }: Baseline,
  wanted: { rounds: number; variants: readonly string[]; load: Facts },
): void {
  if (!part) throw new RangeError('no part was read')
  const { rows, load } = part.comparable
  if (wanted.rounds < 2) {
    throw new Problem('--compare needs --rounds 2 or more, to tell a change from noise.')
  }
  if (!rows.some(({ variant }) => wanted.variants.includes(variant))) {
    throw nothingInCommon(name, part.comparable, wanted.variants)
  }
  const known = Object.fromEntries(Object.keys(wanted.load).map((fact) => [fact, load[fact]]))
  const differences = differ(known, wanted.load)
  if (differences.length === 0) return
  throw new Problem(
    [`${name} was measured with another load:`, ...differences, 'Give the same options.'].join(
      '\n  ',
    ),
  )
}

function nothingInCommon(name: string, { rows }: Comparable, variants: readonly string[]): Problem {
  const has = [...new Set(rows.map(({ variant }) => variant))]
  return new Problem(
    `${name} has none of the variants ${variants.join(', ')}, but ${has.join(', ')}: nothing can be compared.`,
  )
}

function requireRounds(name: string, { rounds }: Comparable): void {
  if (rounds >= 2) return
  throw new Problem(
    `${name} has one round: how much rounds differ from each other, it cannot tell. Take five.`,
  )
}

/**
 * Prints what got better or worse, part by part.
 *
 * @param after `name` is told where it is about something that is wrong with it.
 * @param thresholdPercent a smaller change is none.
 * @returns whether something got worse.
 * @throws Problem when nothing got worse, but something that both have cannot be compared; or they have
 *   nothing in common.
 */
export function printComparison(
  before: Baseline,
  after: Baseline,
  thresholdPercent: number,
): boolean {
  const pairs = after.parts.flatMap(({ comparable: now }) => {
    const old = before.parts.find(({ comparable }) => comparable.part === now.part)
    return old ? [{ old: old.comparable, now }] : []
  })
  if (pairs.length === 0) {
    const [old, now] = [before, after].map(({ parts }) =>
      parts.map(({ comparable }) => comparable.part).join(', '),
    )
    throw new Problem(
      `${before.name} is about ${old}, ${after.name} about ${now}: nothing can be compared.`,
    )
  }
  let isWorse = false
  const problems: string[] = []
  for (const [index, { old, now }] of pairs.entries()) {
    if (index > 0) print()
    try {
      const names = { before: before.name, after: after.name }
      if (printPart(old, now, names, thresholdPercent / 100)) isWorse = true
    } catch (error) {
      problems.push(
        pairs.length === 1 ? describeError(error) : `${now.part}: ${describeError(error)}`,
      )
    }
  }
  if (problems.length === 0) return isWorse
  if (!isWorse) throw new Problem(problems.join('\n'))
  print(`\n${problems.join('\n')}`)
  return true
}

function printPart(
  before: Comparable,
  after: Comparable,
  names: { before: string; after: string },
  threshold: number,
): boolean {
  requireRounds(names.before, before)
  requireRounds(names.after, after)
  if (commonRows(before.rows, after.rows).length === 0) {
    throw nothingInCommon(names.before, before, [
      ...new Set(after.rows.map(({ variant }) => variant)),
    ])
  }
  const differences = differencesOf(before, after)
  const judgement = judge(before, after, differences, threshold)
  const table = comparisonTable(judgement)
  print(comparisonHeader(before, after, names.before, differences))
  print(table === '' ? '' : `\n${table}\n`)
  if (differences.load.length > 0) {
    throw new Problem(
      `${names.before} was measured with another load (see above): repeat it with the same options.`,
    )
  }
  if (judgement.comparisons.every(({ verdict }) => verdict === 'told')) {
    throw new Problem(
      `Of ${names.before}, nothing can be judged: the machine, or the rates, were others.`,
    )
  }
  print(verdicts(judgement, threshold))
  return judgement.comparisons.some(({ verdict }) => verdict === 'worse')
}
