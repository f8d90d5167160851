import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Problem } from '../problem.ts'
import { tableMarkdown } from '../report/markdown.ts'
import { outputFile } from '../report/output-file.ts'
import { print } from '../terminal.ts'
import type { ExperimentResult } from './result.ts'

/** In a document: which table of which file stands below, `<!-- redis-info.json, table 1 -->`. */
const mark = /^<!-- (\S+\.json), table (\d+) -->$/

/** Files of before 2026-11-21, 10:20, have no tables. */
type Stored = Partial<Pick<ExperimentResult, 'tables'>>

/**
 * The text of a document with the tables below its marks as they are in the results. Where a result has
 * none, what stands there stays.
 *
 * @param resultOf gives the result in a file that a mark names.
 * @returns also the names of files without tables.
 * @throws Problem for a mark with a number that the file's tables do not go up to.
 */
export async function fillTables(
  text: string,
  resultOf: (file: string) => Promise<Stored>,
): Promise<{ filled: string; without: string[] }> {
  const lines: string[] = []
  const without = new Set<string>()
  let skipping = false
  for (const line of text.split('\n')) {
    if (skipping && line.startsWith('|')) continue
    if (skipping && line !== '') skipping = false
    if (skipping && line === '' && lines.at(-1) === '') continue
    lines.push(line)
    const [, file, number] = mark.exec(line) ?? []
    if (file === undefined) continue
    const { tables } = await resultOf(file)
    if (tables === undefined) {
      without.add(file)
      continue
    }
    const table = tables[Number(number) - 1]
    if (!table) throw new Problem(`${file} has ${tables.length} tables, and not number ${number}.`)
    lines.push('', tableMarkdown({ caption: '', head: table.head, rows: table.rows }), '')
    skipping = true
  }
  return { filled: lines.join('\n'), without: [...without] }
}

/**
 * `npm run load -- redis document FILE`: puts the tables of the JSON files beside a document into it.
 *
 * @throws Problem when a file is missing or has no such table; the document is as it was then.
 */
export async function fillDocument(path: string): Promise<void> {
  const read = (file: string) =>
    readFile(file, 'utf8').catch((error: Error) => {
      throw new Problem(`${file} cannot be read: ${error.message}`)
    })
  const text = await read(path)
  const document = await outputFile('the document', path)
  const resultOf = async (file: string) => JSON.parse(await read(join(dirname(path), file)))
  const { filled, without } = await fillTables(text, resultOf)
  await document.save(filled)
  for (const file of without) print(`${file} has no tables: what stands below it stays.`)
  print(filled === text ? `${path} is up to date.` : `${path} has the tables anew.`)
}
