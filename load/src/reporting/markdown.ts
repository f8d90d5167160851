import { markdownTable } from 'markdown-table'
import type { Section, Table } from '../experiment/section.ts'
import type { Part } from './part.ts'

/** The claims and tables of results as GitHub-flavored Markdown, without samples and charts. */
export function markdownOf(parts: readonly Part[], notices: readonly string[] = []): string {
  const contents = parts.map(({ title, claims: [first] }) =>
    plain(first === undefined ? `- ${title}` : `- ${title}: ${first}`),
  )
  return `${[
    '# Results',
    `Created by ${code('npm run load')}. docs/method.md describes the method.`,
    ...notices.map(plain),
    ...(parts.length > 1 ? [contents.join('\n')] : []),
    ...parts.flatMap(partTexts),
  ].join('\n\n')}\n`
}

function partTexts({ title, claims, ending, notes, sections, facts, result }: Part): string[] {
  return [
    `## ${plain(title)}`,
    ...claims.map((claim, index) => (index === 0 ? `**${plain(claim)}**` : plain(claim))),
    ...ending.map(plain),
    ...sections.flatMap(sectionTexts),
    ...notes.map(plain),
    [
      `- ${plain(result.date)}: ${code(result.command)}`,
      ...facts.map(([label, text]) => `- ${plain(label)}: ${plain(text)}`),
    ].join('\n'),
  ]
}

function sectionTexts({ title, paragraphs = [], tables }: Section): string[] {
  return [
    `### ${plain(title)}`,
    ...paragraphs.map(plain),
    ...tables.flatMap((table) => [
      ...(table.caption === '' ? [] : [`${plain(table.caption)}:`]),
      tableMarkdown(table),
    ]),
  ]
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
