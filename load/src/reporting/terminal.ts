import { columns, wrapped } from '@onetrip/stack/terminal.ts'
import Table from 'cli-table3'
import type { Table as TableOf } from '../rounds/section.ts'
import type { Part } from './part.ts'

/** The text that a run prints at its end: tables, then the notes on their marks. @param width as for `tableText`. */
export function resultText({ sections, notes, ending, conclusion }: Part, width?: number): string {
  return [
    ...ending,
    ...sections.flatMap(({ table, isDetail }) => (isDetail ? [] : tableText(table, width))),
    notes.flatMap((note) => inWords(note, width)).join('\n'),
    conclusion ? inWords(conclusion, width).join('\n') : [],
  ]
    .flat()
    .join('\n\n')
}

/** Breaks a line where a terminal would break a word; a file keeps it whole. */
export const inWords = (line: string, width = process.stdout.columns): string[] =>
  Number.isFinite(width) ? wrapped(line, width) : [line]

// Columns are separated by spaces; the only line is below the header.
const chars = { mid: '─', 'mid-mid': '──', middle: '  ' }
const GAP = chars.middle.length
const noBorders = ['top', 'bottom', 'left', 'right'].flatMap((side) =>
  ['', '-mid', '-left', '-right'].map((end) => [`${side}${end}`, '']),
)

/**
 * @param width of the terminal. A wider table is continued below, with its first columns, those of text, and the next
 *   ones.
 */
export function tableText({ caption, head, rows, texts }: TableOf, width = columns()): string {
  const lengths = (words: readonly string[]) => words.map(({ length }) => length)
  // Heads wrap at the width of the cells below them.
  const widths = head.map((cell, column) =>
    Math.max(8, ...lengths(cell.split(' ')), ...lengths(rows.map((row) => row[column] ?? ''))),
  )
  const figures = head.findIndex((_, column) => column > 0 && !texts.includes(column))
  const keys = head.keys().toArray().slice(0, figures)
  const widthOf = (part: number[]) =>
    part.reduce((sum, column) => sum + GAP + (widths[column] ?? 0), -GAP)
  const parts = [[...keys]]
  for (const column of head.keys().drop(keys.length)) {
    const last = parts.at(-1) ?? []
    const fits = widthOf([...last, column]) <= width || last.length === keys.length
    if (fits) last.push(column)
    else parts.push([...keys, column])
  }
  const of = (part: number[]) => {
    const pick = <T>(cells: readonly T[]) => part.map((column) => cells[column] as T)
    const table = new Table({
      head: pick(head),
      colWidths: pick(widths),
      wordWrap: true,
      colAligns: part.map((column) => (texts.includes(column) ? 'left' : 'right')),
      chars: { ...Object.fromEntries(noBorders), ...chars },
      style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0, compact: true },
    })
    table.push(...rows.map(pick))
    return table.toString()
  }
  const text = parts.map(of).join('\n\n')
  return caption === '' ? text : `${caption}\n\n${text}`
}
