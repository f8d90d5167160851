import { markdownTable } from 'markdown-table'
import type { Table } from '../rounds/section.ts'
import { commitOf, type Part } from './part.ts'

/** The tables of a result as GitHub-flavored Markdown, without samples. */
export function markdownOf(part: Part): string {
  const { title, ending, notes, sections, facts, result } = part
  const texts = [
    `## ${plain(title)}`,
    ...ending.map(plain),
    ...sections.flatMap(({ title, table }) => [
      `### ${plain(title)}`,
      `${plain(table.caption)}:`,
      tableMarkdown(table),
    ]),
    ...notes.map(plain),
    [
      `- ${plain(result.date)}: ${code(result.command)}`,
      ...facts.map(([label, text]) => `- ${plain(label)}: ${plain(text)}`),
    ].join('\n'),
  ]
  return `${texts.join('\n\n')}\n`
}

const INTRODUCTION = `# Results

Every published result: the command that measures it, and the first rows of the first table of an experiment. To see
all tables and the conditions of a measurement: \`npm run load -- report load/results/FILE\`. How to read the columns:
[docs/method.md](../../docs/method.md). \`npm run load -- publish\` measures all of them again, \`npm run load -- document\`
updates this page.`

const MAX_ROWS = 6

/** The overview of results by name of the file: commands, and the first rows of the main tables. */
export function overviewOf(results: readonly { name: string; part: Part }[]): string {
  const shown = new Set<string>()
  const texts = results.flatMap(({ name, part: { title, sections, result, notes } }) => {
    const line = `- \`${name}\`: ${code(result.command)}`
    const heading = `${title}: ${sections[0]?.title}`
    const table = sections[0]?.table
    if (!table || shown.has(heading)) return [line]
    shown.add(heading)
    const rows = table.rows.slice(0, MAX_ROWS)
    const isPart = rows.length < table.rows.length
    const note = isPart ? ` The table has ${MAX_ROWS} of ${table.rows.length} rows.` : ''
    const words = new Set(rows.flat().flatMap((cell) => cell.split(' ')))
    const legend = notes.filter(([mark = '']) => words.has(mark)).map((text) => `- ${plain(text)}`)
    const list = [...legend, `${line}${note}`].join('\n')
    const main = [`## ${plain(heading)}`, tableMarkdown({ ...table, rows }), list]
    return [`\n${main.join('\n\n')}`]
  })
  const commits = new Set(results.map(({ part }) => code(commitOf(part.result) ?? 'unknown')))
  return `${[INTRODUCTION, `\nCommit ${[...commits].join(', ')}.`, ...texts].join('\n')}\n`
}

/** The same tables without marks, for texts that do not explain them. */
export function unmarked(part: Part): Part {
  const marks = new Set(part.notes.map(([mark = '']) => mark))
  const withoutMarks = (cell: string) =>
    cell
      .split(' ')
      .filter((word) => !marks.has(word))
      .join(' ')
  const sections = part.sections.map((section) => ({
    ...section,
    table: { ...section.table, rows: section.table.rows.map((row) => row.map(withoutMarks)) },
  }))
  return { ...part, sections }
}

export function tableMarkdown({ head, rows, texts }: Table): string {
  const cells = [head, ...rows].map((row) => row.map((cell) => plain(cell.trim())))
  return markdownTable(cells, {
    align: head.map((_, column) => (texts.includes(column) ? null : 'right')),
  })
}

/** Escapes text for Markdown and puts it on one line. */
export function plain(text: string): string {
  return text
    .replaceAll(/\s*\n\s*/g, ' ')
    .replaceAll(/[\\`*_[\]<>|#~]/g, (character) => `\\${character}`)
    .replaceAll('&', '&amp;')
}

/** Text as inline code on one line; backticks become apostrophes. */
export const code = (text: string) =>
  `\`${text.replaceAll(/\s*\n\s*/g, ' ').replaceAll('`', "'")}\``
