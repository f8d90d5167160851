import { markdownTable } from 'markdown-table'
import type { Section, Table } from '../experiment/section.ts'
import type { Part } from './part.ts'

/** The sentences and tables of results as GitHub's Markdown; samples and charts are left out. */
export function markdownOf(parts: readonly Part[], notices: readonly string[] = []): string {
  const contents = parts.map(({ title, claims: [first] }) =>
    plain(first === undefined ? title : `${title}: ${first}`),
  )
  return `${[
    '# Results',
    `Made by ${code('npm run load')}; how it is measured is in docs/method.md.`,
    ...notices.map(plain),
    ...(parts.length > 1 ? [contents.map((line) => `- ${line}`).join('\n')] : []),
    ...parts.map(partText),
  ].join('\n\n')}\n`
}

function partText({ title, claims, ending, notes, sections, provenance }: Part): string {
  return [
    `## ${plain(title)}`,
    ...claims.map((claim, index) => (index === 0 ? `**${plain(claim)}**` : plain(claim))),
    ...ending.map(plain),
    ...sections.map(sectionText),
    ...notes.map(plain),
    [
      `- ${plain(provenance.date)}: ${code(provenance.command)}`,
      ...provenance.facts.map(([label, text]) => `- ${plain(label)}: ${plain(text)}`),
    ].join('\n'),
  ].join('\n\n')
}

function sectionText({ title, paragraphs = [], tables }: Section): string {
  return [
    `### ${plain(title)}`,
    ...paragraphs.map(plain),
    ...tables.flatMap((table) => [
      ...(table.caption === '' ? [] : [`${plain(table.caption)}:`]),
      tableMarkdown(table),
    ]),
  ].join('\n\n')
}

export function tableMarkdown({ head, rows, texts }: Table): string {
  const cells = [head, ...rows].map((row) => row.map((cell) => plain(cell.trim())))
  return markdownTable(cells, {
    align: head.map((_, column) => (texts.includes(column) ? null : 'right')),
  })
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
