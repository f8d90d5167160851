import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { print } from '@onetrip/stack/terminal.ts'
import { Command } from 'commander'
import { percent } from '../experiment/figures.ts'
import { readResult, type SavedResult } from './files.ts'
import { code, plain, tableMarkdown } from './markdown.ts'
import { outputFile } from './output-file.ts'
import { type Part, partOf } from './part.ts'

/** Where the results are that documents show. */
export const published = join(repository, 'load/results')

// Marks in a document, each with what stands below it.
const tables = /^(<!-- (\S+\.json), (table \d+) -->)\n*(?:\|.*\n?)*\n*/gm
const lists = /^(<!-- (\S+\.json), (claims|provenance) -->)\n*(?:- .*\n?)*\n*/gm

/** `npm run load -- document [FILE...]`: puts the figures of load/results into documents. */
export function documentCommand(): Command {
  return new Command('document')
    .description('put the figures of load/results into documents')
    .argument(
      '[file...]',
      'with lines such as <!-- http.json, table 1 --> (default: README.md and docs, where they have such lines)',
    )
    .action(async (files: string[]) => {
      for (const file of files.length > 0 ? files : await markedDocuments())
        await fillDocument(file)
    })
}

/** The paths of README.md and of the files in docs, of those that have marks. */
export async function markedDocuments(): Promise<string[]> {
  const docs = join(repository, 'docs')
  const names = (await readdir(docs)).filter((name) => name.endsWith('.md')).toSorted()
  const paths = [join(repository, 'README.md'), ...names.map((name) => join(docs, name))]
  const texts = await Promise.all(paths.map((path) => readFile(path, 'utf8')))
  return paths.filter((_, index) => marksIn(texts[index] ?? '').length > 0)
}

/** The names of the results that the marks of a text name. */
export function marksIn(text: string): string[] {
  const marks = [tables, lists].flatMap((each) => [...text.matchAll(each)])
  return [...new Set(marks.map(([, , name = '']) => name))]
}

/**
 * Puts the figures of the published results into a document.
 *
 * @throws Problem when a result is missing or has no such table; the document is as it was then.
 */
async function fillDocument(path: string): Promise<void> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new Problem(`${path} cannot be read: ${error.message}`)
  })
  const document = await outputFile('the document', path)
  const filled = await withFigures(text).catch((error: Error) => {
    throw error instanceof Problem ? new Problem(`${path} stays as it is. ${error.message}`) : error
  })
  if (filled !== text) await document.save(filled)
  print(filled === text ? `${path} is up to date.` : `${path} has the figures anew.`)
}

/**
 * The text of a document with what stands below its marks as it is in the results; all else stays.
 *
 * @throws Problem when it has no marks, or a result does not have what one asks for.
 */
export async function withFigures(text: string, folder = published): Promise<string> {
  const names = marksIn(text)
  if (names.length === 0) throw new Problem('It has no line such as <!-- http.json, table 1 -->.')
  const parts = new Map<string, Part>()
  for (const name of names) {
    const { experiment, result }: SavedResult = await readResult(join(folder, name))
    parts.set(name, partOf(experiment, result))
  }
  const fill = (_: string, line: string, name: string, what: string) => {
    const part = parts.get(name)
    return part ? `${line}\n\n${content(part, name, what)}\n\n` : line
  }
  return text.replaceAll(tables, fill).replaceAll(lists, fill).replace(/\n+$/, '\n')
}

function content(part: Part, name: string, what: string): string {
  if (what === 'provenance') return `- ${provenanceText(part)}`
  if (what === 'claims') {
    return [...part.claims, ...part.notes].map((line) => `- ${plain(line)}`).join('\n')
  }
  const all = part.sections.flatMap((section) => section.tables)
  const table = all[Number(what.replace('table ', '')) - 1]
  if (table) return tableMarkdown(table)
  throw new Problem(`${name} has ${all.length} tables, and no ${what}.`)
}

/** When, by which command and on what, in one line. */
function provenanceText({ provenance, result }: Part): string {
  const { date, command, facts } = provenance
  const fact = (name: string) => plain(facts.find(([label]) => label === name)?.[1] ?? '-')
  const elsewhere = result.elsewhere === null ? 'an unknown share' : percent(result.elsewhere)
  return (
    `${date.slice(0, 10)}, ${date.slice(11, 16)} UTC: ${code(command)}. ${fact('Machine')}; ` +
    `Redis ${fact('Redis')}; ${elsewhere} of the CPU time went elsewhere.`
  )
}
