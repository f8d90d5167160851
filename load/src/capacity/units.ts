import { InvalidArgumentError } from 'commander'
import { figure } from '../experiment/figures.ts'

const prefixes: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  B: 1e9,
  T: 1e12,
}

/**
 * A parser for numbers with an optional decimal prefix: `250000`, `10k`, `1.5M`, `2B` (or `2G`), `1T`.
 * Case-insensitive.
 *
 * @param least the smallest valid number.
 * @param unit optional after the number: `b/s`.
 */
export const quantity = (least: number, unit = '') => {
  const pattern = new RegExp(`^(\\d{1,15}(?:\\.\\d{1,6})?) ?([kMGBT]?)(?:${unit})?$`, 'i')
  return (text: string): number => {
    const [, digits, prefix = ''] = pattern.exec(text.trim()) ?? []
    const factor =
      prefixes[prefix] ?? prefixes[prefix.toUpperCase()] ?? prefixes[prefix.toLowerCase()]
    const value = Number(digits) * (factor ?? Number.NaN)
    if (value >= least && value <= MAX && (least < 1 || Number.isInteger(value))) return value
    throw new InvalidArgumentError(
      `It must be a number from ${least}${unit} to 1T${unit}, such as 250000${unit}, 10k${unit}, 1.5M${unit} or 2G${unit}.`,
    )
  }
}

const MAX = 1e12

/** Formats a value with a decimal prefix: `1.50 TB`, `12.0 Gb/s`. */
export function withPrefix(value: number, unit: string): string {
  const steps = ['T', 'G', 'M', 'k', ''] as const
  const step = steps.find((prefix) => value >= (prefixes[prefix] ?? 1)) ?? ''
  return `${figure(value / (prefixes[step] ?? 1))} ${step}${unit}`
}
