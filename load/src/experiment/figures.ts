import type { Ratio, Summary } from './statistics.ts'

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })

/** A figure with as many digits as are worth reading: 12,345, 123, 12.3, 1.23; `-` for none. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '-'
  const size = Math.abs(value)
  if (size >= 99.95) return whole.format(value)
  return value.toFixed(size >= 9.995 ? 1 : 2)
}

/** `1 round`, `5 rounds`, `1,000 sessions`. */
export function counted(count: number, noun: string): string {
  return `${whole.format(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** Median with the range of the rounds: `3.50 (3.00-4.00)`. */
export function withRange({ median, min, max }: Summary): string {
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
