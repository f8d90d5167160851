import { mkdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { places } from '@onetrip/stack/places.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { print, printError, step } from '@onetrip/stack/terminal.ts'
import type { Command } from 'commander'
import type { SavedResult } from './files.ts'
import { toJson } from './json.ts'
import { markdownOf } from './markdown.ts'
import { type OutputFile, outputFile } from './output-file.ts'
import { pageOf } from './page.ts'
import { partOf } from './part.ts'

/** What `addOutputs` adds to a command's options. */
export interface OutputFlags {
  json?: string | undefined
  html?: string | undefined
  markdown?: string | undefined
  /** Whether to renew the latest report. */
  report?: boolean | undefined
}

/** Adds `--json`, `--html`, `--markdown` and `--no-report` to a command that measures. */
export function addOutputs(
  command: Command,
  json = 'json <file>',
  about = 'write everything, with all samples, to this file',
): Command {
  return command
    .option(`--${json}`, about)
    .option('--html <file>', 'write the report to this file: one page, charts included')
    .option('--markdown <file>', 'write the tables and the result as Markdown to this file')
    .option('--no-report', 'leave the latest report (.onetrip/report/latest.html) as it is')
}

/**
 * Makes sure, before anything is measured, that all files can be written which the options ask for. The
 * latest report, which nobody asked for, is left out where it cannot be written; `ONETRIP_REPORT=off` does
 * the same as `--no-report`.
 *
 * @returns what writes them, each file whole or not at all, and says where it is.
 * @throws Problem when one of the files cannot be written.
 */
export async function prepareOutputs(
  flags: OutputFlags,
): Promise<(results: readonly SavedResult[], notices?: readonly string[]) => Promise<void>> {
  const wanted = async (option: string, name: string | undefined) =>
    name === undefined ? null : await outputFile(option, name)
  const given = [flags.json, flags.html, flags.markdown].filter((name) => name !== undefined)
  if (new Set(given.map((name) => resolve(name))).size < given.length) {
    throw new Problem('--json, --html and --markdown name the same file: give each its own.')
  }
  const json = await wanted('--json', flags.json)
  const html = await wanted('--html', flags.html)
  const markdown = await wanted('--markdown', flags.markdown)
  const latest = flags.report === true && process.env.ONETRIP_REPORT !== 'off'
  const latestHtml = latest ? await latestReport() : null
  return async (results, notices = []) => {
    if (json) {
      for (const { result } of results) await json.save(toJson(result))
      print(`\nAll samples are in ${json.path}`)
    }
    if (markdown) {
      const parts = results.map(({ experiment, result }) => partOf(experiment, result))
      await markdown.save(markdownOf(parts, notices))
      print(`The tables are in ${markdown.path}`)
    }
    if (!html && !latestHtml) return
    const page = await step('Drawing the report', () => pageOf(results, notices))
    if (html) {
      await html.save(page)
      print(`The report is in ${html.path}`)
    }
    if (latestHtml) await renewLatest(latestHtml, page)
  }
}

/** What nobody asked for, fails nothing. */
async function renewLatest(file: OutputFile, page: string): Promise<void> {
  try {
    await file.save(page)
    print(`\nThe latest report: ${file.path}`)
  } catch (error) {
    printError(`No latest report: ${messageOf(error)}`)
  }
}

/** The report that the API serves at /report; null, and a line about it, where it cannot be written. */
async function latestReport(): Promise<OutputFile | null> {
  const { report } = places()
  try {
    await mkdir(dirname(report), { recursive: true })
    return await outputFile('the latest report,', report)
  } catch (error) {
    printError(`No latest report: ${messageOf(error)}`)
    return null
  }
}
