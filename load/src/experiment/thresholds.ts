import { InvalidArgumentError } from 'commander'
import type { Row, Rows } from './rows.ts'
import type { Shape } from './shape.ts'

/** The name of the metric with the number of failures in all rounds. Every experiment has it. */
export const ERRORS = 'errors'

const operators: Readonly<Record<string, (value: number, limit: number) => boolean>> = {
  '<': (value, limit) => value < limit,
  '<=': (value, limit) => value <= limit,
  '>': (value, limit) => value > limit,
  '>=': (value, limit) => value >= limit,
  '=': (value, limit) => value === limit,
}

/** A condition for all rows (`p99<5`), or for the rows of some cases (`batch:p99<5`). */
export interface Threshold {
  /** As the user wrote it. */
  readonly text: string
  /** The displayed value of a factor, or the name of a row; undefined for all rows. */
  readonly of: string | undefined
  readonly metric: string
  readonly operator: string
  readonly limit: number
}

const FORM = /^(?:(?<of>.+):)?\s*(?<metric>\w+)\s*(?<operator><=|>=|==|[<>=])\s*(?<limit>\d[\d.]*)$/

/**
 * Parses `[case:]metric<number`, with one of `<`, `<=`, `>`, `>=` and `=`.
 *
 * @throws InvalidArgumentError when the syntax is wrong, or the experiment has no such metric.
 */
export function parseThreshold({ name, metrics }: Shape, text: string): Threshold {
  const { of, metric = '', operator = '', limit } = FORM.exec(text.trim())?.groups ?? {}
  const value = Number(limit)
  if (!Number.isFinite(value)) {
    throw new InvalidArgumentError(
      `"${text}" is not a threshold such as 'p99<5', 'errors=0' or 'batch:p99<5'.`,
    )
  }
  const known = [...metrics.map((one) => one.name), ERRORS]
  if (!known.includes(metric)) {
    throw new InvalidArgumentError(
      `${name} has no metric "${metric}". Its metrics are ${known.join(', ')}.`,
    )
  }
  return { text, of, metric, operator: operator === '==' ? '=' : operator, limit: value }
}

/** The rows that a threshold applies to. */
export const rowsOf = ({ of }: Threshold, rows: Rows): readonly Row[] =>
  rows.all.filter(
    (row) =>
      of === undefined ||
      rows.nameOf(row) === of ||
      rows.shape.factors.some(({ name }) => row.text(name) === of),
  )

/** A threshold applied to one row. */
export interface Judged {
  readonly threshold: Threshold
  readonly row: Row
  /** The compared value; null if the row has no value. Then the threshold is crossed. */
  readonly value: number | null
  readonly isMet: boolean
}

/** Compares the values that the tables show with the thresholds. */
export function judgeThresholds(rows: Rows, thresholds: readonly Threshold[]): Judged[] {
  return thresholds.flatMap((threshold) =>
    rowsOf(threshold, rows).map((row): Judged => {
      const { metric, operator, limit } = threshold
      const value = metric === ERRORS ? sum(Object.values(row.errors)) : row.value(metric)
      const isMet = value !== null && operators[operator]?.(value, limit) === true
      return { threshold, row, value, isMet }
    }),
  )
}

const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0)
