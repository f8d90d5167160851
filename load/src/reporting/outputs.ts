import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { places } from '@onetrip/stack/places.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { print, printError, step } from '@onetrip/stack/terminal.ts'
import { Command } from 'commander'
import type { Result } from '../experiment/result.ts'
import { experiments } from '../experiments.ts'
import { gitState, publishedResults } from '../measure/machine.ts'
import { readResult, readResults, type SavedResult } from './files.ts'
import { markdownOf } from './markdown.ts'
import { indexOf, pageOf } from './page.ts'
import { partOf } from './part.ts'

/** The options that `addOutputs` adds to a command. */
export interface OutputFlags {
  json?: string
  html?: string
  markdown?: string
  /** Whether to update the latest report. */
  report?: boolean
}

/** Adds `--json`, `--html`, `--markdown` and `--no-report` to a command that measures. */
export function addOutputs(
  command: Command,
  json = '--json <file>',
  about = 'write the result with all samples to this file',
): Command {
  const latest = 'do not update the latest report (.onetrip/report/latest.html)'
  return addReports(command.option(json, about)).option('--no-report', latest)
}

/** Adds `--html` and `--markdown`. */
function addReports(command: Command): Command {
  return command
    .option('--html <file>', 'write the report with charts to this file, as one HTML page')
    .option('--markdown <file>', 'write the claims and tables to this file, as Markdown')
}

/**
 * Checks before the measurement that the output files can be written. `ONETRIP_REPORT=off` is equivalent to
 * `--no-report`.
 *
 * @returns a function that writes the files atomically and prints their paths.
 * @throws Problem when a file cannot be written, or when `--json` would publish figures of uncommitted code.
 */
export async function prepareOutputs(flags: OutputFlags) {
  if (flags.json !== undefined) await requireCommitted(flags.json)
  const file = async (name: 'json' | 'html' | 'markdown') => {
    const path = flags[name]
    return path === undefined ? null : await outputFile(`--${name}`, path)
  }
  const [json, html, markdown] = [await file('json'), await file('html'), await file('markdown')]
  const isLatest = flags.report === true && process.env.ONETRIP_REPORT !== 'off'
  return async (results: readonly SavedResult[], notices: readonly string[] = []) => {
    for (const { result } of json ? results : []) await json?.save(toJson(result))
    if (json) print(`\nAll samples are in ${json.path}`)
    const parts = results.map(partOf)
    await markdown?.save(markdownOf(parts, notices))
    if (markdown) print(`The tables are in ${markdown.path}`)
    if (html) {
      await html.save(await step('Drawing the report', () => pageOf(parts, notices)))
      print(`The report is in ${html.path}`)
    }
    if (isLatest) await updateLatest(results)
  }
}

/**
 * Checks that published figures can be traced to a commit.
 *
 * @throws Problem if the path is the folder of published results or a file in it, and the code has uncommitted changes.
 */
export async function requireCommitted(path: string): Promise<void> {
  const target = resolve(path)
  if (target !== publishedResults && dirname(target) !== publishedResults) return
  const git = await gitState()
  if (git?.dirty === false) return
  throw new Problem(
    `--json ${path} would publish figures of code that is not committed. Commit the changes (git status) and measure again, or write to another folder.`,
  )
}

/** `npm run load -- report PATH...`: makes a report from saved results. */
export function reportCommand(): Command {
  const command = new Command('report')
    .description('make a report from results that were saved with --json')
    .argument('<path...>', 'result files, or folders of result files')
  return addReports(command)
    .addHelpText(
      'after',
      `
The HTML page loads nothing from the network: it contains styles, charts, tables and the results. Without --html
and --markdown, the tables are printed as Markdown.

Examples:
  npm run load -- report load/results --html report.html
  npm run load -- report main.json mine.json`,
    )
    .action(async (paths: string[]) => {
      const flags = command.opts<OutputFlags>()
      const save = await prepareOutputs(flags)
      const results = (await Promise.all(paths.map(readResults))).flat()
      if (flags.html !== undefined || flags.markdown !== undefined) await save(results)
      else print(markdownOf(results.map(partOf)))
    })
}

/**
 * Updates the report that the API serves at /report: a page for the latest result of each experiment, and an index.
 * The user did not ask for this report, so an error is only printed.
 */
async function updateLatest(results: readonly SavedResult[]): Promise<void> {
  const { report } = places()
  // The folder is called `report`, like the path /report, so that links work in the API and as files.
  const folder = join(dirname(report), 'report')
  const write = async (path: string, text: string) =>
    (await outputFile('the latest report,', path)).save(text)
  try {
    await mkdir(folder, { recursive: true })
    for (const saved of results) {
      const page = await step('Drawing the report', () => pageOf([partOf(saved)]))
      await write(join(folder, `${saved.experiment.name}.html`), page)
      await write(join(folder, `${saved.experiment.name}.json`), toJson(saved.result))
    }
    const known = await Promise.all(
      // Skip results of other versions, which cannot be read.
      experiments.map(({ name }) => readResult(join(folder, `${name}.json`)).catch(() => null)),
    )
    const parts = known.flatMap((one) => one ?? []).map(partOf)
    await write(
      report,
      indexOf(parts, ({ result }) => `report/${result.experiment}.html`),
    )
    print(`\nThe latest report: ${report}`)
  } catch (error) {
    printError(`The latest report was not updated: ${messageOf(error)}`)
  }
}

/**
 * A file to be written atomically: `save` writes a temporary file and renames it.
 *
 * @throws Problem when the file cannot be written; `save`, too.
 */
export async function outputFile(option: string, name: string) {
  const path = resolve(name)
  const draft = `${path}.${process.pid}.tmp`
  const attempt = async (work: () => Promise<unknown>) => {
    try {
      await work()
    } catch (error) {
      throw new Problem(`${option} ${name} cannot be written: ${messageOf(error)}.`)
    } finally {
      await rm(draft, { force: true }).catch(() => {})
    }
  }
  await attempt(async () => {
    const found = await stat(path).catch(() => null)
    if (found?.isDirectory()) throw new Error('it is a folder')
    await writeFile(draft, '')
  })
  const save = (text: string) =>
    attempt(async () => {
      await writeFile(draft, text, { flush: true })
      await rename(draft, path)
    })
  return { path, save }
}

/** JSON with fractions of six significant digits, and one line per sample. */
function toJson({ samples, ...about }: Result): string {
  const head = JSON.stringify(about, sixDigits, 2).replace(/\n}$/, '')
  const lines = samples.map((sample) => `    ${JSON.stringify(sample, sixDigits)}`)
  return `${head},\n  "samples": [\n${lines.join(',\n')}\n  ]\n}\n`
}

function sixDigits(_key: string, value: unknown): unknown {
  const isFraction = typeof value === 'number' && !Number.isInteger(value)
  return isFraction ? Number(value.toPrecision(6)) : value
}
