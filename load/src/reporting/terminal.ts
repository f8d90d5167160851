import { styleText } from 'node:util'
import Table from 'cli-table3'
import type { Experiment } from '../experiment/experiment.ts'
import type { Result } from '../experiment/result.ts'
import type { Table as TableOf } from '../experiment/section.ts'
import { partOf } from './part.ts'

export { factsOf } from './part.ts'

/** What a run prints when it is over: tables, then what they say. */
export function resultText(experiment: Experiment, result: Result): string {
  const { sections, claims, notes } = partOf(experiment, result)
  const shown = sections.filter(({ pageOnly }) => !pageOnly)
  return [
    ...shown.flatMap(({ tables }) => tables.map(tableText)),
    [
      ...claims.map((claim, index) => (index === 0 ? styleText('bold', claim) : claim)),
      ...notes,
    ].join('\n'),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

// Columns set apart by spaces, and one line below the header.
const chars = {
  ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '' },
  ...{ bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' },
  ...{ left: '', 'left-mid': '', mid: '─', 'mid-mid': '──' },
  ...{ right: '', 'right-mid': '', middle: '  ' },
}

export function tableText({ caption, head, rows, texts }: TableOf): string {
  const table = new Table({
    head: head.map((cell, column) => broken(cell, widest(rows, column))),
    colAligns: head.map((_, index) => (texts.includes(index) ? 'left' : 'right')),
    chars,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0, compact: true },
  })
  table.push(...rows.map((row) => [...row]))
  return `${caption === '' ? '' : `${caption}\n\n`}${table.toString()}`
}

/** Of a column, however short what stands in it. */
const MIN_WIDTH = 8
const MAX_LINES = 4

const widest = (rows: TableOf['rows'], column: number) =>
  Math.max(MIN_WIDTH, ...rows.map((row) => row[column]?.length ?? 0))

/** A head in lines that are no wider than what stands below it, unless these would be too many. */
function broken(head: string, width: number): string {
  const lines: string[] = []
  for (const word of head.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width) {
      lines[lines.length - 1] = `${last} ${word}`
    } else lines.push(word)
  }
  return lines.length > MAX_LINES ? broken(head, width + 1) : lines.join('\n')
}
