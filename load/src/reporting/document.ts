import { glob, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { print } from '@onetrip/stack/terminal.ts'
import { Command } from 'commander'
import { percent } from '../experiment/figures.ts'
import type { Table } from '../experiment/section.ts'
import { readResult } from './files.ts'
import { code, plain, tableMarkdown } from './markdown.ts'
import { ioThreadsText, type Part, partOf } from './part.ts'

/** Where the results are that documents show. */
export const published = join(repository, 'load/results')

// A mark in a document, with the table or the list below it. A table may be cut down to some rows and
// columns, by the first cell of a row and the beginning of a head: `table 1: naive, batch; p50 ms, errors`.
const marks =
  /^<!-- (\S+\.json), (?:(table \d+(?:: [^;\n]+; [^;\n]+?)?) -->\n*(?:\|.*\n?)*|(claims|provenance) -->\n*(?:- .*\n?)*)\n*/gm

/** `npm run load -- document [FILE...]`: puts the figures of load/results into documents. */
export function documentCommand(): Command {
  return new Command('document')
    .description('put the figures of load/results into documents')
    .argument(
      '[file...]',
      'with lines such as <!-- http.json, table 1 --> (default: README.md and docs, where they have such lines)',
    )
    .action(async (files: string[]) => {
      for (const file of files.length > 0 ? files : await markedDocuments()) await fill(file)
    })
}

/** The paths of README.md and of the files in docs, of those that have marks. */
export async function markedDocuments(): Promise<string[]> {
  const names = await Array.fromAsync(glob(['README.md', 'docs/*.md'], { cwd: repository }))
  const paths = names.toSorted().map((name) => join(repository, name))
  const texts = await Promise.all(paths.map((path) => readFile(path, 'utf8')))
  return paths.filter((_, index) => marksIn(texts[index] ?? '').length > 0)
}

/** The names of the results that the marks of a text name. */
export function marksIn(text: string): string[] {
  return [...new Set([...text.matchAll(marks)].map(([, name = '']) => name))]
}

/** @throws Problem, and leaves the document as it is, when a result is missing or has no such table. */
async function fill(path: string): Promise<void> {
  try {
    const text = await readFile(path, 'utf8')
    const filled = await withFigures(text)
    if (filled !== text) await writeFile(path, filled)
    print(filled === text ? `${path} is up to date.` : `${path} has the new figures.`)
  } catch (error) {
    throw new Problem(`${path} stays as it is. ${messageOf(error)}`)
  }
}

/**
 * The text of a document with new tables and lists below its marks; all else stays.
 *
 * @throws Problem when it has no marks, or a result does not have what one asks for.
 */
export async function withFigures(text: string, folder = published): Promise<string> {
  const names = marksIn(text)
  if (names.length === 0) throw new Problem('It has no line such as <!-- http.json, table 1 -->.')
  const results = await Promise.all(names.map((name) => readResult(join(folder, name))))
  const parts = new Map(results.map((saved) => [saved.name, partOf(saved)]))
  const replaced = text.replaceAll(marks, (_, name: string, table?: string, list?: string) => {
    const what = table ?? list ?? ''
    return `<!-- ${name}, ${what} -->\n\n${content(parts.get(name) as Part, name, what)}\n\n`
  })
  return replaced.replace(/\n+$/, '\n')
}

function content(part: Part, name: string, what: string): string {
  if (what === 'provenance') return `- ${provenanceText(part)}`
  if (what === 'claims') {
    return [...part.claims, ...part.notes].map((line) => `- ${plain(line)}`).join('\n')
  }
  const tables = part.sections.flatMap((section) => section.tables)
  const [tableName = '', selection] = what.split(': ')
  const table = tables[Number(tableName.replace('table ', '')) - 1]
  if (!table) throw new Problem(`${name} has ${tables.length} tables, and no ${tableName}.`)
  return tableMarkdown(selection === undefined ? table : selected(table, selection, name))
}

function selected(table: Table, selection: string, name: string): Table {
  const [rowNames = [], columnNames = []] = selection.split('; ').map((names) => names.split(', '))
  const rows = rowNames.map((wanted) => {
    const row = table.rows.find(([first]) => first === wanted)
    if (!row) throw new Problem(`${name} has no row ${wanted} in this table.`)
    return row
  })
  const columns = columnNames.map((wanted) => {
    const column = table.head.findIndex((head) => head.startsWith(wanted))
    if (column < 0) throw new Problem(`${name} has no column ${wanted} in this table.`)
    return column
  })
  const cut = (row: readonly string[]) => [0, ...columns].map((column) => row[column] ?? '')
  return { ...table, head: cut(table.head), rows: rows.map(cut), texts: [0] }
}

/** When, by which command and on what, in one line. */
function provenanceText({ facts, result }: Part): string {
  const { date, command, elsewhere } = result
  const when = `${date.slice(0, 10)}, ${date.slice(11, 16)} UTC`
  const { Machine = '-', Redis = '-' } = Object.fromEntries(facts)
  const share = elsewhere === null ? 'an unknown share' : percent(elsewhere)
  const redis = [`Redis ${Redis}`, ioThreadsText(result) ?? []].flat().join(', ')
  return `${when}: ${code(command)}. ${plain(Machine)}; ${plain(redis)}; ${share} of the CPU time went elsewhere.`
}
