import { Problem } from '@onetrip/stack/problem.ts'
import { print } from '@onetrip/stack/terminal.ts'
import { Command } from 'commander'
import { readResults } from './files.ts'
import { markdownOf } from './markdown.ts'
import { prepareOutputs } from './outputs.ts'
import { partOf } from './part.ts'

interface ReportFlags {
  html?: string
  markdown?: string
}

/** `npm run load -- report PATH...`: from results that were saved earlier. */
export function reportCommand(): Command {
  const command = new Command('report')
    .description('make a report from results that were saved with --json')
    .argument('<path...>', 'files, or folders of them, to be shown one after the other')
    .option('--html <file>', 'write it to this file: one page, charts included')
    .option('--markdown <file>', 'write the tables and the result as Markdown to this file')
    .addHelpText(
      'after',
      `
The page needs no network: style, charts, tables, every sample and the results themselves are in it. Without
--html and --markdown the tables go to the terminal as Markdown.

Examples:
  npm run load -- report load/results --html report.html
  npm run load -- report main.json mine.json`,
    )
  return command.action(async (paths: string[]) => {
    const flags = command.opts<ReportFlags>()
    const save = await prepareOutputs(flags)
    const results = (await Promise.all(paths.map(readResults))).flat()
    if (results.length === 0) throw new Problem('There are no results.')
    if (flags.html !== undefined || flags.markdown !== undefined) await save(results)
    else print(markdownOf(results.map(({ experiment, result }) => partOf(experiment, result))))
  })
}
