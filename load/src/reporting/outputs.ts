import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { places } from '@onetrip/stack/places.ts'
import { messageOf } from '@onetrip/stack/problem.ts'
import { print, printError, step } from '@onetrip/stack/terminal.ts'
import type { Command } from 'commander'
import type { SavedResult } from './files.ts'
import { toJson } from './json.ts'
import { markdownOf } from './markdown.ts'
import { outputFile } from './output-file.ts'
import { pageOf } from './page.ts'
import { partOf } from './part.ts'

/** The options that `addOutputs` adds to a command. */
export interface OutputFlags {
  json?: string
  html?: string
  markdown?: string
  /** Whether to renew the latest report. */
  report?: boolean
}

/** Adds `--json`, `--html`, `--markdown` and `--no-report` to a command that measures. */
export function addOutputs(
  command: Command,
  json = 'json <file>',
  about = 'write everything, with all samples, to this file',
): Command {
  return addReports(command.option(`--${json}`, about)).option(
    '--no-report',
    'leave the latest report (.onetrip/report/latest.html) as it is',
  )
}

/** Adds `--html` and `--markdown`. */
export function addReports(command: Command): Command {
  return command
    .option('--html <file>', 'write the report to this file: one page, charts included')
    .option('--markdown <file>', 'write the tables and the result as Markdown to this file')
}

/**
 * Makes sure, before anything is measured, that all files can be written which the options ask for.
 * `ONETRIP_REPORT=off` does the same as `--no-report`.
 *
 * @returns what writes them, each file whole or not at all, and says where it is.
 * @throws Problem when one of the files cannot be written.
 */
export async function prepareOutputs({
  json,
  html,
  markdown,
  report,
}: OutputFlags): Promise<
  (results: readonly SavedResult[], notices?: readonly string[]) => Promise<void>
> {
  const jsonFile = json === undefined ? null : await outputFile('--json', json)
  const htmlFile = html === undefined ? null : await outputFile('--html', html)
  const markdownFile = markdown === undefined ? null : await outputFile('--markdown', markdown)
  const isLatest = report === true && process.env.ONETRIP_REPORT !== 'off'
  return async (results, notices = []) => {
    if (jsonFile) {
      for (const { result } of results) await jsonFile.save(toJson(result))
      print(`\nAll samples are in ${jsonFile.path}`)
    }
    if (markdownFile) {
      const parts = results.map(({ experiment, result }) => partOf(experiment, result))
      await markdownFile.save(markdownOf(parts, notices))
      print(`The tables are in ${markdownFile.path}`)
    }
    if (!htmlFile && !isLatest) return
    const page = await step('Drawing the report', () => pageOf(results, notices))
    if (htmlFile) {
      await htmlFile.save(page)
      print(`The report is in ${htmlFile.path}`)
    }
    if (isLatest) await renewLatest(page)
  }
}

/** Writes the report that the API serves at /report. Nobody asked for it, so a failure is only printed. */
async function renewLatest(page: string): Promise<void> {
  const { report } = places()
  try {
    await mkdir(dirname(report), { recursive: true })
    const file = await outputFile('the latest report,', report)
    await file.save(page)
    print(`\nThe latest report: ${file.path}`)
  } catch (error) {
    printError(`No latest report: ${messageOf(error)}`)
  }
}
