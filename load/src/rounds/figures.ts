import type { Ratio, Summary } from './statistics.ts'

const whole = (value: number) => Math.round(value).toLocaleString('en-US')

/** A rounded number: 12,345, 123, 12.3, 1.23; `-` if it is not finite. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '-'
  const size = Math.abs(value)
  if (size >= 99.95) return whole(value)
  return value.toFixed(size >= 9.995 ? 1 : 2)
}

/** A count and its noun: `1 round`, `5 rounds`, `1,000 sessions`. */
export const counted = (count: number, noun: string): string =>
  `${whole(count)} ${noun}${count === 1 ? '' : 's'}`

/** Median with the range of the rounds: `3.50 (3.00-4.00)`; `-` for none. */
export function withRange(summary: Summary | null, text = figure): string {
  if (!summary) return '-'
  const { median, min, max } = summary
  return min === max ? text(median) : `${text(median)} (${text(min)}-${text(max)})`
}

/** A mean ratio with the range of the rounds: `3.50 (3.00-4.00)`; `-` for none. */
export const withRatioRange = (ratio: Ratio | null): string =>
  withRange(ratio && { ...ratio, median: ratio.mean })

/** A share of 0 to 1 as a percentage: `97.1 %`, `0.04 %`. */
export const percent = (share: number): string => `${figure(share * 100)} %`

/** Errors by kind, most frequent first: `0`, or `503: 12, timeout: 3`. */
export function errorKinds(errors: Readonly<Record<string, number>>): string {
  const kinds = Object.entries(errors).toSorted(([, a], [, b]) => b - a)
  return kinds.map(([kind, count]) => `${kind}: ${whole(count)}`).join(', ') || '0'
}
