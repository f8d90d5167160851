import { print } from '@onetrip/stack/terminal.ts'
import { Command } from 'commander'
import { readResults } from './files.ts'
import { markdownOf } from './markdown.ts'
import { addReports, type OutputFlags, prepareOutputs } from './outputs.ts'
import { partOf } from './part.ts'

/** `npm run load -- report PATH...`: from results that were saved earlier. */
export function reportCommand(): Command {
  const command = new Command('report')
    .description('make a report from results that were saved with --json')
    .argument('<path...>', 'files, or folders of them, to be shown one after the other')
  return addReports(command)
    .addHelpText(
      'after',
      `
The page needs no network: style, charts, tables and the results themselves are in it. Without --html and
--markdown the tables go to the terminal as Markdown.

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
