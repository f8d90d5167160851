import Table from 'cli-table3'

const whole = (value: number) => Math.round(value).toLocaleString('en-US')

/** A rounded number: 12,345, 123, 12.3, 1.23; `-` if it is not finite. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '-'
  const size = Math.abs(value)
  if (size >= 99.95) return whole(value)
  return value.toFixed(size >= 9.995 ? 1 : 2)
}

/** A share of 0 to 1 as a percentage: `97.1 %`, `0.04 %`. */
export const percent = (share: number): string => `${figure(share * 100)} %`

/** A count and its noun: `1 finding`, `5 findings`. */
export const counted = (count: number, noun: string): string =>
  `${whole(count)} ${noun}${count === 1 ? '' : 's'}`

/** The readable name of a command from INFO: `CLIENT LIST` for `client|list`. */
export const commandName = (name: string): string => name.replace('|', ' ').toUpperCase()

export interface TextTable {
  readonly caption: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** Indexes of the columns with text. They are left-aligned. */
  readonly texts: readonly number[]
}

// Columns are separated by spaces; the only line is below the header.
const chars = { mid: '─', 'mid-mid': '──', middle: '  ' }
const noBorders = ['top', 'bottom', 'left', 'right'].flatMap((side) =>
  ['', '-mid', '-left', '-right'].map((end) => [`${side}${end}`, '']),
)

/** Breaks a line at spaces into lines of at most `width` characters; a longer word stays whole. */
export const wrapped = (line: string, width: number): string[] =>
  line.match(new RegExp(`(?=\\S)(.{1,${width}}(?=\\s|$)|\\S+)`, 'g')) ?? ['']

/** The width of standard output; 80 if it is no terminal. */
export const columns = (): number => process.stdout.columns || 80

/** Heads wrap at the width of their longest word, and the widest column of text so that the table fits the terminal. */
export function tableText({ caption, head, rows, texts }: TextTable, width = columns()): string {
  const longest = (words: readonly string[]) => Math.max(...words.map(({ length }) => length))
  const widths = head.map((cell, column) =>
    longest([...cell.split(' '), ...rows.map((row) => row[column] ?? '')]),
  )
  const widest = texts.toSorted((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0))[0] ?? 0
  const excess = widths.reduce((sum, one) => sum + 2 + one, -2) - width
  widths[widest] = Math.max(12, (widths[widest] ?? 0) - Math.max(0, excess))
  const table = new Table({
    head: [...head],
    colWidths: widths,
    wordWrap: true,
    colAligns: head.map((_, index) => (texts.includes(index) ? 'left' : 'right')),
    chars: { ...Object.fromEntries(noBorders), ...chars },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0, compact: true },
  })
  table.push(...rows.map((row) => [...row]))
  return `${caption}\n\n${table.toString()}`
}
