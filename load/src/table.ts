import Table from 'cli-table3'
import type { Ratio, Summary } from './statistics.ts'

// How all commands print figures and tables.

/** A table to be printed. */
export interface TextTable {
  readonly title?: string
  /** May break lines. The first column is left-aligned, and so are those in `texts`. */
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** Indexes of columns with text. */
  readonly texts?: readonly number[]
}

// Columns set apart by spaces, and one line below the header.
const chars = {
  ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '' },
  ...{ bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' },
  ...{ left: '', 'left-mid': '', mid: '─', 'mid-mid': '──' },
  ...{ right: '', 'right-mid': '', middle: '  ' },
}

export function renderTable({ title, head, rows, texts = [] }: TextTable): string {
  const table = new Table({
    head: [...head],
    colAligns: head.map((_, index) => (index === 0 || texts.includes(index) ? 'left' : 'right')),
    chars,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0, compact: true },
  })
  table.push(...rows.map((row) => [...row]))
  return `${title === undefined ? '' : `${title}\n\n`}${table.toString()}`
}

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })

/** A figure with as many digits as are worth reading: 12,345, 123, 12.3, 1.23; `-` for none. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '-'
  if (value >= 100) return whole.format(value)
  return value.toFixed(value >= 10 ? 1 : 2)
}

/** `1 round`, `5 rounds`, `1,000 sessions`. */
export function counted(count: number, noun: string): string {
  return `${whole.format(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** Median with the range of the rounds: `13.9 (13.5-14.4)`; `-` for what could not be measured. */
export function withRange(summary: Summary | null): string {
  if (!summary) return '-'
  const { median, min, max } = summary
  return min === max ? figure(median) : `${figure(median)} (${figure(min)}-${figure(max)})`
}

/** Mean with its interval: `13.4 (12.7-14.1)`; `-` for what could not be compared. */
export function withInterval(ratio: Ratio | null): string {
  if (!ratio) return '-'
  const { mean, interval } = ratio
  const range = interval ? ` (${figure(interval.low)}-${figure(interval.high)})` : ''
  return `${figure(mean)}${range}`
}

/** A share of 0 to 1 as a percentage: `97.1 %`, `0.04 %`. */
export function percent(share: number): string {
  return `${figure(share * 100)} %`
}

/** Errors by kind, most frequent first: `0`, or `503: 12, timeout: 3`. */
export function errorKinds(errors: Readonly<Record<string, number>>): string {
  // A status would come first among an object's keys, however rare it is.
  const kinds = Object.entries(errors).toSorted(([, a], [, b]) => b - a)
  return kinds.map(([kind, count]) => `${kind}: ${whole.format(count)}`).join(', ') || '0'
}
