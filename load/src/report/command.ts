import { print, step } from '@onetrip/stack/terminal.ts'
import { Command } from 'commander'
import { toJson } from './json.ts'
import { outputFile } from './output-file.ts'
import { joined, readDocument } from './read.ts'
import { renderHtml, renderMarkdown } from './render.ts'

interface ReportFlags {
  json?: string
  html?: string
  markdown?: string
}

/** `npm run load -- report`: from files that were saved earlier. */
export function reportCommand(): Command {
  return new Command('report')
    .description('make a report from files that were saved with --json')
    .argument('<file...>', 'results in any of our formats, to be shown one after the other')
    .option('--json <file>', 'write what these files hold to this one, as load all would')
    .option('--html <file>', 'write it to this file: one page, charts included')
    .option('--markdown <file>', 'write the tables and the result as Markdown to this file')
    .addHelpText(
      'after',
      `
The page needs no network: style, charts, tables, every sample and the files themselves are in it.
Without --json, --html and --markdown, the Markdown is printed.

Examples:
  npm run load -- report results.json --html report.html
  npm run load -- report http.json store.json --html report.html --markdown report.md
  npm run load -- report http.json latency.json --json results.json`,
    )
    .action(makeReport)
}

/** @throws Problem for a file that is none of ours, or cannot be read or written. */
async function makeReport(files: readonly string[], flags: ReportFlags): Promise<void> {
  const { json, html, markdown } = flags
  const whole = json === undefined ? null : await outputFile('--json', json)
  const page = html === undefined ? null : await outputFile('--html', html)
  const tables = markdown === undefined ? null : await outputFile('--markdown', markdown)
  const documents = await Promise.all(files.map(readDocument))
  if (whole) {
    const command = ['npm run load -- report', ...files, '--json', json].join(' ')
    await whole.save(toJson(joined(documents, command)))
    print(`The results are in ${whole.path}`)
  }
  if (page) {
    await page.save(await step('Drawing the report', () => renderHtml(documents)))
    print(`The report is in ${page.path}`)
  }
  if (tables) {
    await tables.save(renderMarkdown(documents))
    print(`The tables are in ${tables.path}`)
  }
  if (!whole && !page && !tables) print(renderMarkdown(documents))
}
