import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Problem } from '@onetrip/stack/problem.ts'
import { print } from '@onetrip/stack/terminal.ts'
import { code, plain, tableMarkdown } from '../report/markdown.ts'
import { outputFile } from '../report/output-file.ts'
import { experimentPart, printedTable } from '../report/parts/experiment.ts'
import { readDocument } from '../report/read.ts'
import { percent } from '../table.ts'
import type { ExperimentResult } from './result.ts'

// Marks in a document, each with what stands below it: a table, or a list of sentences.
const tables = /^(<!-- (\S+\.json), table (\d+) -->)\n*(?:\|.*\n?)*\n*/gm
const lists = /^(<!-- (\S+\.json), (conclusions|provenance) -->)\n*(?:- .*\n?)*\n*/gm

/**
 * The text of a document with what stands below its marks as it is in the results; all else stays.
 *
 * @param resultOf gives the result in a file that a mark names.
 * @throws Problem when it has no marks, and for a table that the file does not have.
 */
export async function fillMarks(
  text: string,
  resultOf: (file: string) => Promise<ExperimentResult>,
): Promise<string> {
  const files = [tables, lists].flatMap((marks) =>
    [...text.matchAll(marks)].map(([, , file]) => file),
  )
  if (files.length === 0) {
    throw new Problem('It has no line such as <!-- redis-info.json, table 1 -->.')
  }
  const results = new Map<string, ExperimentResult>()
  for (const file of new Set(files)) if (file) results.set(file, await resultOf(file))
  const fill = (mark: string, file: string, what: string) => {
    const result = results.get(file)
    return result ? `${mark}\n\n${content(result, file, what)}\n\n` : mark
  }
  const filled = text
    .replaceAll(tables, (_, mark, file, number) => fill(mark, file, number))
    .replaceAll(lists, (_, mark, file, what) => fill(mark, file, what))
  return filled.replace(/\n+$/, '\n')
}

function content(result: ExperimentResult, file: string, what: string): string {
  if (what === 'provenance') return provenanceText(result)
  if (what === 'conclusions') return result.conclusions.map((line) => `- ${plain(line)}`).join('\n')
  const table = result.tables[Number(what) - 1]
  if (table) return tableMarkdown(printedTable(table))
  throw new Problem(`${file} has ${result.tables.length} tables, and not number ${what}.`)
}

/** When, by which command and on what, in one line. */
function provenanceText(result: ExperimentResult): string {
  const { date, command, facts } = experimentPart({ ...result }).provenance
  const fact = (name: string) => plain(facts.find(([label]) => label === name)?.[1] ?? '-')
  const elsewhere = result.elsewhere === null ? 'an unknown share' : percent(result.elsewhere)
  return (
    `- ${date.slice(0, 10)}, ${date.slice(11, 16)} UTC: ${code(command)}. ${fact('Machine')}; ` +
    `Redis ${fact('Redis')}; ${elsewhere} of the CPU time went elsewhere.`
  )
}

/**
 * `npm run load -- redis document FILE`: puts the figures of the JSON files beside a document into it.
 *
 * @throws Problem when a file is missing, is the result of no experiment, or has no such table; the
 *   document is as it was then.
 */
export async function fillDocument(path: string): Promise<void> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new Problem(`${path} cannot be read: ${error.message}`)
  })
  const document = await outputFile('the document', path)
  const filled = await fillMarks(text, (file) => readExperiment(join(dirname(path), file))).catch(
    (error: Error) => {
      throw error instanceof Problem
        ? new Problem(`${path} stays as it is. ${error.message}`)
        : error
    },
  )
  await document.save(filled)
  print(filled === text ? `${path} is up to date.` : `${path} has the figures anew.`)
}

/** @throws Problem when it is not what an experiment writes with `--json`, tables included. */
export async function readExperiment(path: string): Promise<ExperimentResult> {
  const { document } = await readDocument(path)
  const result = document as Partial<ExperimentResult> | null
  if (result?.format === 'onetrip-load-redis/1' && result.tables && result.conclusions) {
    return result as ExperimentResult
  }
  throw new Problem(
    `${path} is no result of an experiment with tables in it: measure it again with --json.`,
  )
}
