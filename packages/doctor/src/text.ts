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

/** Breaks a line at spaces into lines of at most `width` characters; a longer word stays whole. */
export const wrapped = (line: string, width: number): string[] =>
  line.match(new RegExp(`(?=\\S)(.{1,${width}}(?=\\s|$)|\\S+)`, 'g')) ?? ['']

/** The width of standard output; 80 if it is no terminal. */
export const columns = (): number => process.stdout.columns || 80

export interface TextTable {
  readonly caption: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

/** Columns of numbers are right-aligned. Long texts should be in the last column, which is not padded. */
export function tableText({ caption, head, rows }: TextTable): string {
  const lines = [head, ...rows].map((cells) =>
    cells.map((cell, column) => {
      const width = Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0))
      const isNumber = rows.every((row) => /^[\d-]/.test(row[column] ?? ''))
      if (isNumber) return cell.padStart(width)
      return column === head.length - 1 ? cell : cell.padEnd(width)
    }),
  )
  return [caption, '', ...lines.map((cells) => cells.join('  '))].join('\n')
}
