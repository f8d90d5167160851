import type { Part, ReportTable, Section } from './model.ts'
import { type NamedDocument, noticesOf, partsOf } from './read.ts'

/**
 * The sentences and tables of the documents as GitHub's Markdown; the samples and charts are left out.
 *
 * @throws Problem when one of them is in none of our formats.
 */
export function renderMarkdown(documents: readonly NamedDocument[]): string {
  const notices = documents.flatMap(noticesOf).map(plain)
  return `${[...notices, ...documents.flatMap(partsOf).map(partMarkdown)].join('\n\n')}\n`
}

function partMarkdown(part: Part): string {
  const { title, headline, sections, provenance } = part
  return [
    `## ${plain(title)}`,
    ...headline.map((sentence, index) => (index === 0 ? bold(sentence) : plain(sentence))),
    ...sections.map(sectionMarkdown),
    provenanceMarkdown(provenance),
  ].join('\n\n')
}

const bold = (text: string) => `**${plain(text)}**`

function sectionMarkdown({ title, paragraphs = [], tables = [], notes = [] }: Section): string {
  return [
    `### ${plain(title)}`,
    ...paragraphs.map(plain),
    ...tables.flatMap((table) => [
      ...(table.caption === '' ? [] : [`${plain(table.caption)}:`]),
      tableMarkdown(table),
    ]),
    ...notes.map(plain),
  ].join('\n\n')
}

function provenanceMarkdown({ date, command, facts }: Part['provenance']): string {
  return [
    `- ${plain(date)}: ${code(command)}`,
    ...facts.map(([label, text]) => `- ${plain(label)}: ${plain(text)}`),
  ].join('\n')
}

/** A table with columns of the same width throughout, to be read as text, too. */
export function tableMarkdown({ head, rows, texts = [] }: ReportTable): string {
  const lines = [head, ...rows].map((row) => row.map((cell) => plain(cell.trim())))
  const widths = head.map((_, column) =>
    Math.max(3, ...lines.map((line) => (line[column] ?? '').length)),
  )
  const right = (column: number) => column > 0 && !texts.includes(column)
  const cells = lines.map((line) =>
    line.map((cell, column) => {
      const width = widths[column] ?? 0
      return right(column) ? cell.padStart(width) : cell.padEnd(width)
    }),
  )
  const rule = widths.map((width, column) =>
    right(column) ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width),
  )
  const [first = [], ...rest] = cells
  return [first, rule, ...rest].map((line) => `| ${line.join(' | ')} |`).join('\n')
}

/** Text that stays what it is in Markdown, and on one line. */
export function plain(text: string): string {
  return text
    .replaceAll(/\s*\n\s*/g, ' ')
    .replaceAll(/[\\`*_[\]<>|#~]/g, (character) => `\\${character}`)
    .replaceAll('&', '&amp;')
}

/** Text as code, however many backticks it has. */
export function code(text: string): string {
  const line = text.replaceAll(/\s*\n\s*/g, ' ')
  const longest = Math.max(0, ...(line.match(/`+/g) ?? []).map(({ length }) => length))
  const fence = '`'.repeat(longest + 1)
  return longest > 0 ? `${fence} ${line} ${fence}` : `${fence}${line}${fence}`
}
