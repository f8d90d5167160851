import { InvalidArgumentError } from 'commander'

const milliseconds: Record<string, number> = { us: 0.001, µs: 0.001, ms: 1, s: 1_000 }
const bits: Record<string, number> = { '': 1, k: 1e3, M: 1e6, G: 1e9 }

const LONGEST_MS = 60_000

/**
 * A parser for commander: milliseconds, from a text such as `0.271ms`, `135us` or `2s`.
 *
 * @throws InvalidArgumentError when it is none, or longer than a minute.
 */
export function duration(text: string): number {
  const [, amount = '', unit = ''] = /^(\d+(?:\.\d+)?) ?(us|µs|ms|s)$/.exec(text.trim()) ?? []
  const value = Number(amount) * (milliseconds[unit] ?? Number.NaN)
  if (value <= LONGEST_MS) return value
  throw new InvalidArgumentError('It must be a time such as 0.271ms, 135us or 2s, up to 60s.')
}

/**
 * A parser for commander: bits per second, from a text such as `1Gb/s`, `1.8Mb/s` or `64kb/s`;
 * Infinity for `unlimited`.
 *
 * @throws InvalidArgumentError when it is none.
 */
export function bandwidth(text: string): number {
  if (text.trim() === 'unlimited') return Number.POSITIVE_INFINITY
  const [, amount = '', unit = '-'] = /^(\d+(?:\.\d+)?) ?([kMG]?)b\/s$/.exec(text.trim()) ?? []
  const value = Number(amount) * (bits[unit] ?? Number.NaN)
  if (value > 0) return value
  throw new InvalidArgumentError('It must be a bandwidth such as 1Gb/s, 1.8Mb/s or "unlimited".')
}

/** Bits per second in words: `1.8 Mb/s`. */
export function describeBandwidth(bitsPerSecond: number): string {
  if (bitsPerSecond === Number.POSITIVE_INFINITY) return 'unlimited'
  const [unit, size] =
    Object.entries(bits).findLast(([, size]) => bitsPerSecond >= size) ?? (['', 1] as const)
  return `${Number((bitsPerSecond / size).toPrecision(6))} ${unit}b/s`
}
