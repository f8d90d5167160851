import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { places } from '@onetrip/stack/places.ts'
import { messageOf } from '@onetrip/stack/problem.ts'
import { print, printError, step } from '@onetrip/stack/terminal.ts'
import type { Command } from 'commander'
import { toJson } from './json.ts'
import { type OutputFile, outputFile } from './output-file.ts'
import { renderHtml, renderMarkdown } from './render.ts'

/** What `addOutputs` adds to a command's options. */
export interface OutputFlags {
  json?: string
  html?: string
  markdown?: string
  /** Whether to renew the latest report; default no, but commander makes it true. */
  report?: boolean
  /** Is given the result, for a command that runs others. */
  collect?: (result: ResultDocument) => void
}

/** A result in one of our formats: an object that says which, and can be written as JSON. */
export interface ResultDocument {
  /** `onetrip-load-http/3`, for instance. */
  readonly format: string
}

export interface Outputs {
  /** Writes the JSON file alone, with what there is so far. Says where it is; null where none is written. */
  keep(result: ResultDocument): Promise<string | null>
  /** Writes what was asked for, each file whole or not at all, and says where it is. */
  save(result: ResultDocument): Promise<void>
}

/** Adds `--json`, `--html`, `--markdown` and `--no-report` to a command that measures. */
export function addOutputs(command: Command): Command {
  return command
    .option('--json <file>', 'write everything, with all samples, to this file')
    .option('--html <file>', 'write the report to this file: one page, charts included')
    .option('--markdown <file>', 'write the tables and the result as Markdown to this file')
    .option('--no-report', 'leave the latest report (.onetrip/report/latest.html) as it is')
}

/** The options that are about what is measured, for the record. */
export function withoutOutputs<Options extends OutputFlags>(
  options: Options,
): Omit<Options, keyof OutputFlags> {
  const { json, html, markdown, report, collect, ...rest } = options
  return rest
}

/**
 * Makes sure, before anything is measured, that all files can be written which the options ask for.
 * The latest report, which nobody asked for, is left out where it cannot be written;
 * `ONETRIP_REPORT=off` does the same as `--no-report`.
 *
 * @throws Problem when one of the files cannot be written.
 */
export async function prepareOutputs(flags: OutputFlags): Promise<Outputs> {
  const wanted = async (option: string, name: string | undefined) =>
    name === undefined ? null : await outputFile(option, name)
  const json = await wanted('--json', flags.json)
  const html = await wanted('--html', flags.html)
  const markdown = await wanted('--markdown', flags.markdown)
  const latest = flags.report === true && process.env.ONETRIP_REPORT !== 'off'
  const latestHtml = latest ? await latestReport() : null
  return {
    async keep(result) {
      await json?.save(toJson(result))
      return json?.path ?? null
    },
    async save(result) {
      flags.collect?.(result)
      // Through JSON and back: a report shows what the file says, and no more.
      const text = toJson(result)
      if (json) {
        await json.save(text)
        print(`\nAll samples are in ${json.path}`)
      }
      if (!html && !markdown && !latestHtml) return
      const document: unknown = JSON.parse(text)
      if (markdown) {
        await markdown.save(renderMarkdown([{ name: 'this run', document }]))
        print(`The tables are in ${markdown.path}`)
      }
      if (html) {
        await html.save(await page(document))
        print(`The report is in ${html.path}`)
      }
      if (latestHtml) await renewLatest(latestHtml, document)
    },
  }
}

const page = (document: unknown) =>
  step('Drawing the report', () => renderHtml([{ name: 'this run', document }]))

/** What nobody asked for, fails nothing. */
async function renewLatest(file: OutputFile, document: unknown): Promise<void> {
  try {
    await file.save(await page(document))
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
