import { glob, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { print } from '@onetrip/stack/terminal.ts'
import { Command } from 'commander'
import { readMeasurements, sources } from '../capacity/measurements.ts'
import { documented } from '../capacity/tables.ts'
import { percent } from '../experiment/figures.ts'
import type { Result } from '../experiment/result.ts'
import type { Table } from '../experiment/section.ts'
import { readResult } from './files.ts'
import { code, plain, tableMarkdown } from './markdown.ts'
import { ioThreadsText, type Part, partOf } from './part.ts'

/** Where the results are that documents show. */
export const published = join(repository, 'load/results')

// A mark in a document, with the table or the list below it. A table may be cut down to some rows and
// columns, by the first cell of a row and the beginning of a head: `table 1: naive, batch; p50 ms, errors`.
const marks =
  /^<!-- (\S+\.json|capacity), (?:(table \d+(?:: [^;\n]+; [^;\n]+?)?) -->\n*(?:\|.*\n?)*|(claims|provenance) -->\n*(?:- .*\n?)*)\n*/gm

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

/** The names of the results that the marks of a text name, and of those that the capacity is computed from. */
export function marksIn(text: string): string[] {
  const names = [...text.matchAll(marks)].map(([, name = '']) => name)
  return [...new Set(names.flatMap((name) => (name === CAPACITY ? Object.keys(sources) : name)))]
}

/** Stands in a mark for what `npm run capacity` computes. */
const CAPACITY = 'capacity'

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
  const parts = new Map<string, Content>(results.map((saved) => [saved.name, partOf(saved)]))
  if (text.includes(`<!-- ${CAPACITY},`)) {
    const { tables, claims } = documented(await readMeasurements(folder))
    parts.set(CAPACITY, { claims, notes: [], sections: [{ title: CAPACITY, tables }] })
  }
  const replaced = text.replaceAll(marks, (_, name: string, table?: string, list?: string) => {
    const what = table ?? list ?? ''
    return `<!-- ${name}, ${what} -->\n\n${content(parts.get(name) as Content, name, what)}\n\n`
  })
  return replaced.replace(/\n+$/, '\n')
}

type Content = Pick<Part, 'claims' | 'notes' | 'sections'> & Partial<Pick<Part, 'facts' | 'result'>>

function content(part: Content, name: string, what: string): string {
  if (what === 'provenance' && part.result) return `- ${provenanceText(part.facts, part.result)}`
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
function provenanceText(facts: Part['facts'] = [], result: Result): string {
  const { date, command, elsewhere } = result
  const when = `${date.slice(0, 10)}, ${date.slice(11, 16)} UTC`
  const { Machine = '-', Redis = '-' } = Object.fromEntries(facts)
  const share = elsewhere === null ? 'an unknown share' : percent(elsewhere)
  const redis = [`Redis ${Redis}`, ioThreadsText(result) ?? []].flat().join(', ')
  return `${when}: ${code(command)}. ${plain(Machine)}; ${plain(redis)}; ${share} of the CPU time went elsewhere.`
}
