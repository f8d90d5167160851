import { existsSync } from 'node:fs'
import { glob, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { print } from '@onetrip/stack/terminal.ts'
import { Command } from 'commander'
import { published } from '../measure/machine.ts'
import { publishedRuns } from '../publish/runs.ts'
import { percent } from '../rounds/figures.ts'
import type { Result } from '../rounds/result.ts'
import { Rows } from '../rounds/rows.ts'
import type { Table } from '../rounds/section.ts'
import { type Case, metricOf } from '../rounds/shape.ts'
import { barChart } from './bar-chart.ts'
import { readResult, readResults } from './files.ts'
import { code, overviewOf, plain, tableMarkdown, unmarked } from './markdown.ts'
import { ioThreadsText, type Part, partOf } from './part.ts'

interface Chart {
  /** Its name in `docs/images`, without `.svg`. */
  readonly image: string
  /** The name of the result, without `.json`. */
  readonly result: string
  readonly metrics: readonly string[]
  /** Which cases of the result it shows. */
  shows(one: Case): boolean
  readonly isLogarithmic?: boolean
}

const charts: readonly Chart[] = [
  {
    image: 'pattern',
    result: 'pattern',
    metrics: ['callsPerSecond', 'clientCpuMicros'],
    shows: ({ concurrency }) => concurrency === 64,
  },
  {
    image: 'percentiles',
    result: 'latency',
    metrics: ['p99'],
    shows: ({ at }) => !/p99/.test(String(at)),
    isLogarithmic: true,
  },
  {
    image: 'departures',
    result: 'departures',
    metrics: ['max'],
    shows: ({ departure }) => !/another/.test(String(departure)),
  },
]

// A mark in a document, with the table or list below it. A mark can select rows (by their first cell) and columns
// (by the beginning of their head) of a table: `table 1: naive, batch; p50 ms, errors`.
const marks =
  /^<!-- (\S+\.json), (?:(table (?:\d+|last)(?:: [^;\n]+; [^;\n]+?)?) -->\n*(?:\|.*\n?)*|(notes|provenance) -->\n*(?:- .*\n?)*)\n*/gm

/** `npm run load -- document [FILE...]`: updates the figures in documents from load/results. */
export function documentCommand(): Command {
  return new Command('document')
    .description(
      'update the figures and charts in documents, and load/results/README.md, from load/results',
    )
    .argument(
      '[file...]',
      'documents with marks such as <!-- http.json, table 1 --> (default: README.md and docs/)',
    )
    .action(async (files: string[]) => {
      for (const file of files.length > 0 ? files : await markedDocuments()) await fill(file)
      if (files.length > 0) return
      await writeFile(join(published, 'README.md'), await publishedOverview())
      for (const { path, svg } of await drawnCharts()) await writeFile(path, svg)
    })
}

/** The text of load/results/README.md. */
export async function publishedOverview(): Promise<string> {
  const results = await readResults(published)
  return overviewOf(results.map((saved) => ({ name: saved.name, part: partOf(saved) })))
}

/** The SVG images of the results that have been measured. */
export async function drawnCharts(): Promise<{ path: string; svg: string }[]> {
  const all = await readResults(published)
  return charts.flatMap(({ image, result: wanted, metrics, shows, isLogarithmic }) => {
    const found = all.find(({ name }) => name === `${wanted}.json`)
    if (!found) return []
    const { experiment, result } = found
    const rows = Rows.of(
      experiment,
      result.samples.filter((sample) => shows(sample.case)),
    )
    const named = metrics.map((name) => metricOf(experiment, name))
    const chart = barChart(rows, named, isLogarithmic)
    return chart
      ? [{ path: join(repository, 'docs/images', `${image}.svg`), svg: `${chart.svg}\n` }]
      : []
  })
}

/** The paths of README.md, the pages in docs and the READMEs of examples, if they have marks. */
export async function markedDocuments(): Promise<string[]> {
  const names = await Array.fromAsync(
    glob(['README.md', 'docs/**/*.md', 'examples/*/README.md'], { cwd: repository }),
  )
  const paths = names.toSorted().map((name) => join(repository, name))
  const texts = await Promise.all(paths.map((path) => readFile(path, 'utf8')))
  return paths.filter((_, index) => marksIn(texts[index] ?? '').length > 0)
}

/** The names of the results that the marks of a text need. */
function marksIn(text: string): string[] {
  return [...new Set([...text.matchAll(marks)].map(([, name = '']) => name))]
}

/** @throws Problem when a result or table is missing. Then the document is unchanged. */
async function fill(path: string): Promise<void> {
  try {
    const text = await readFile(path, 'utf8')
    const filled = await withFigures(text)
    if (filled !== text) await writeFile(path, filled)
    print(filled === text ? `${path} is up to date.` : `${path} has the new figures.`)
  } catch (error) {
    throw new Problem(`${path} was not changed. ${messageOf(error)}`)
  }
}

/**
 * Replaces the tables and lists below the marks of a document. Rows are marked as doubtful only where the document has
 * the notes that explain it.
 *
 * @throws Problem when the text has no marks, or a result lacks a table, row or column that a mark names.
 */
export async function withFigures(text: string, folder = published): Promise<string> {
  const names = marksIn(text)
  if (names.length === 0) {
    throw new Problem('It has no mark such as <!-- http.json, table 1 -->.')
  }
  const isPlanned = (name: string) => publishedRuns.some((run) => `${run.name}.json` === name)
  const isMissing = (name: string) => isPlanned(name) && !existsSync(join(folder, name))
  const measured = names.filter((name) => !isMissing(name))
  const results = await Promise.all(measured.map((name) => readResult(join(folder, name))))
  const parts = new Map(results.map((saved) => [saved.name, partOf(saved)]))
  const replaced = text.replaceAll(marks, (_, name: string, table?: string, list?: string) => {
    const what = table ?? list ?? ''
    const part = parts.get(name)
    const isExplained = text.includes(`<!-- ${name}, notes -->`)
    const filled = part
      ? content(isExplained ? part : unmarked(part), name, what)
      : table
        ? UNMEASURED
        : `- ${UNMEASURED_TEXT}`
    return `<!-- ${name}, ${what} -->\n\n${filled}\n\n`
  })
  return replaced.replace(/\n+$/, '\n')
}

const UNMEASURED_TEXT = 'to be measured with `npm run load -- publish`'
const UNMEASURED = `| ${UNMEASURED_TEXT} |\n| --- |`

function content(part: Part, name: string, what: string): string {
  if (what === 'provenance') return `- ${provenanceText(part.facts, part.result)}`
  if (what === 'notes') return part.notes.map((line) => `- ${plain(line)}`).join('\n')
  const { sections } = part
  const [tableName = '', selection] = what.split(': ')
  const place = tableName.replace('table ', '')
  const table = sections.at(place === 'last' ? -1 : Number(place) - 1)?.table
  if (!table) throw new Problem(`${name} has no ${tableName}, only ${sections.length} tables.`)
  return tableMarkdown(selection === undefined ? table : selected(table, selection, name))
}

/** Marks that follow the name of a row: `batch * †`. */
const MARKS = /( [^\w\s]+)+$/

function selected(table: Table, selection: string, name: string): Table {
  const [rowNames = [], columnNames = []] = selection.split('; ').map((names) => names.split(', '))
  const isWhole = rowNames.join() === 'all rows'
  const named = isWhole ? [] : rowNames
  const rows = named.map((wanted) => {
    const row = table.rows.find(([first = '']) => first.replace(MARKS, '') === wanted)
    if (!row) throw new Problem(`The table of ${name} has no row ${wanted}.`)
    return row
  })
  const columns = columnNames.map((wanted) => {
    const column = table.head.findIndex((head) => head.startsWith(wanted))
    if (column < 0) throw new Problem(`The table of ${name} has no column ${wanted}.`)
    return column
  })
  const labels = isWhole ? table.texts : [0]
  const cut = (row: readonly string[]) => [...labels, ...columns].map((column) => row[column] ?? '')
  const texts = labels.map((_, index) => index)
  return { ...table, head: cut(table.head), rows: (isWhole ? table.rows : rows).map(cut), texts }
}

/** Date, command, machine and Redis in one line. */
function provenanceText(facts: Part['facts'], result: Result): string {
  const { date, command, elsewhere } = result
  const when = `${date.slice(0, 10)}, ${date.slice(11, 16)} UTC`
  const { Machine = '-', Redis = '-' } = Object.fromEntries(facts)
  const share = elsewhere === null ? 'an unknown share' : percent(elsewhere)
  const redis = [`Redis ${Redis}`, ioThreadsText(result) ?? []].flat().join(', ')
  return `${when}: ${code(command)}. ${plain(Machine)}; ${plain(redis)}; other programs used ${share} of the CPU time.`
}
