import Table from 'cli-table3'
import type { Table as TableOf } from '../experiment/section.ts'
import type { Part } from './part.ts'

/** The text that a run prints at its end: tables, then the notes on their marks. */
export function resultText({ sections, notes, ending }: Part): string {
  return [
    ...ending,
    ...sections.flatMap(({ tables, isDetail }) => (isDetail ? [] : tables.map(tableText))),
    notes.join('\n'),
  ].join('\n\n')
}

// Columns are separated by spaces; the only line is below the header.
const chars = { mid: '─', 'mid-mid': '──', middle: '  ' }
const noBorders = ['top', 'bottom', 'left', 'right'].flatMap((side) =>
  ['', '-mid', '-left', '-right'].map((end) => [`${side}${end}`, '']),
)

export function tableText({ caption, head, rows, texts }: TableOf): string {
  const lengths = (words: readonly string[]) => words.map(({ length }) => length)
  const table = new Table({
    head: [...head],
    // Heads wrap at the width of the cells below them.
    colWidths: head.map((cell, column) =>
      Math.max(8, ...lengths(cell.split(' ')), ...lengths(rows.map((row) => row[column] ?? ''))),
    ),
    wordWrap: true,
    colAligns: head.map((_, index) => (texts.includes(index) ? 'left' : 'right')),
    chars: { ...Object.fromEntries(noBorders), ...chars },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0, compact: true },
  })
  table.push(...rows.map((row) => [...row]))
  return `${caption === '' ? '' : `${caption}\n\n`}${table.toString()}`
}
