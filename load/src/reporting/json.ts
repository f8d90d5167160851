import type { Result } from '../experiment/result.ts'

/** A result as JSON to be kept: figures with six digits, and a line for each sample. */
export function toJson({ samples, ...about }: Result): string {
  const head = JSON.stringify(about, sixDigits, 2).replace(/\n}$/, '')
  const lines = samples.map((sample) => `    ${JSON.stringify(sample, sixDigits)}`)
  return `${head},\n  "samples": [\n${lines.join(',\n')}\n  ]\n}\n`
}

/** Keeps of a figure what is worth keeping. */
function sixDigits(_key: string, value: unknown): unknown {
  const isFraction = typeof value === 'number' && !Number.isInteger(value)
  return isFraction ? Number(value.toPrecision(6)) : value
}
