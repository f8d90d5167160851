import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { places } from '@onetrip/stack/places.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { print, printError } from '@onetrip/stack/terminal.ts'
import { Command } from 'commander'
import { gitState, published } from '../measure/machine.ts'
import type { Result } from '../rounds/result.ts'
import { readResult, type SavedResult } from './files.ts'
import { markdownOf } from './markdown.ts'
import { pageOf } from './page.ts'
import { partOf } from './part.ts'

/** The options that `addOutputs` adds to a command. */
export interface OutputFlags {
  json?: string
  /** Whether to update the latest report. */
  report?: boolean
  /** Whether a table may be wider than the terminal. */
  wide?: boolean
}

/** Adds `--json`, `--no-report` and `--wide` to a command that measures. */
export const addOutputs = (command: Command): Command =>
  command
    .option('--json <file>', 'write the result with all samples to this file')
    .option('--no-report', 'do not update the latest report (.onetrip/report/latest.html)')
    .option('--wide', 'print each table in one piece, even if it is wider than the terminal')

/**
 * Checks before the measurement that the output file can be written. `ONETRIP_REPORT=off` is equivalent to
 * `--no-report`.
 *
 * @returns a function that writes the result atomically and prints its path.
 * @throws Problem when the file cannot be written, or when `--json` would publish figures of uncommitted code.
 */
export async function prepareOutputs(flags: OutputFlags) {
  if (flags.json !== undefined) await requireCommitted(flags.json)
  const json = flags.json === undefined ? null : await outputFile('--json', flags.json)
  const isLatest = flags.report === true && process.env.ONETRIP_REPORT !== 'off'
  return async (saved: SavedResult) => {
    await json?.save(toJson(saved.result))
    if (json) print(`\nAll samples are in ${json.path}`)
    if (isLatest) await updateLatest(saved)
  }
}

/**
 * Checks that published figures can be traced to a commit.
 *
 * @throws Problem if the path is in the folder of published results, and the code has uncommitted changes.
 */
async function requireCommitted(path: string): Promise<void> {
  if (dirname(resolve(path)) !== published) return
  const git = await gitState()
  if (git?.dirty === false) return
  throw new Problem(
    `--json ${path} would publish figures of code that is not committed. Commit the changes (git status) and measure again, or write to another folder.`,
  )
}

/** `npm run load -- report FILE...`: prints the report of saved results as Markdown. */
export const reportCommand = (): Command =>
  new Command('report')
    .description('print all tables of results that were saved with --json, as Markdown')
    .argument('<file...>', 'result files')
    .addHelpText('after', '\nExamples:\n  npm run load -- report load/results/http.json')
    .action(async (paths: string[]) => {
      const results = await Promise.all(paths.map(readResult))
      print(results.map((saved) => markdownOf(partOf(saved))).join('\n'))
    })

/** Updates the report that the API serves at /report. The user did not ask for it, so an error is only printed. */
async function updateLatest(saved: SavedResult): Promise<void> {
  const { report } = places()
  try {
    await mkdir(dirname(report), { recursive: true })
    const page = await outputFile('the latest report,', report)
    await page.save(pageOf(saved))
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
    if (found && !found.isFile()) throw new Error('it is a device or a pipe')
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
