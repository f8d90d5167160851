import { Command, Option } from 'commander'
import { addPresets, listOf } from '../options.ts'
import { addOutputs, type OutputFlags } from '../report/outputs.ts'
import { allParts, type Preset } from './parts.ts'

export interface AllOptions extends OutputFlags {
  quick?: boolean
  full?: boolean
  parts?: string[]
}

const names = allParts.map(({ name }) => name)

export const presetOf = ({ quick, full }: AllOptions): Preset =>
  quick ? 'quick' : full ? 'full' : 'usual'

/** The subcommand's options and help; what it does is added by the caller. */
export function allCommand(): Command {
  const command = new Command('all')
    .description('measure everything, one after the other, into one file and one report')
    .addOption(new Option('--parts <list>', `out of ${names.join(', ')}`).argParser(listOf(names)))
  addPresets(command, {
    quick: `a first impression: ${told('quick')}`,
    full: `everything at full length: ${told('full')}`,
  })
  return addOutputs(command).addHelpText(
    'after',
    `
Without --quick or --full: ${told('usual')}. Each part is as its own command with the same preset; what
--parts names runs even if the preset leaves it out. A part that fails is told at the end, and the others
are measured. Ctrl-C keeps what is complete. The machine should have nothing else to do meanwhile.

Examples:
  npm run load -- all --quick --html report.html
  npm run load -- all --full --json results.json
  npm run load -- all --parts http,latency --json results.json`,
  )
}

/** `http, latency; about 5 minutes`. */
function told(preset: Preset): string {
  const parts = allParts.filter(({ seconds }) => seconds[preset] !== null)
  const seconds = parts.reduce((sum, part) => sum + (part.seconds[preset] ?? 0), 0)
  return `${parts.map(({ name }) => name).join(', ')}; about ${Math.ceil(seconds / 60)} minutes`
}
