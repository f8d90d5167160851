import { listOf } from '@onetrip/stack/parsers.ts'
import { Command, Option } from 'commander'
import { addPresets } from '../presets.ts'
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
    quick: `a first impression, ${minutes('quick')}`,
    full: `everything at full length, ${minutes('full')}`,
  })
  return addOutputs(command).addHelpText(
    'after',
    `
Without --quick or --full: ${minutes('usual')}. Each part is as its own command with the same preset.
  --quick leaves out   ${leftOut('quick')}
  else left out        ${leftOut('usual')}
What --parts names runs in any case. A part that fails is told at the end, and the others are measured.
Ctrl-C keeps what is complete. Each part is saved as soon as it is complete, in the file of --json or else
in .onetrip/report/all.json: what kills the command costs the part that it was in. The machine
should have nothing else to do meanwhile.

Examples:
  npm run load -- all --quick --html report.html
  npm run load -- all --full --json results.json
  npm run load -- all --parts http,latency --json results.json`,
  )
}

function minutes(preset: Preset): string {
  const seconds = allParts.reduce((sum, part) => sum + (part.seconds[preset] ?? 0), 0)
  return `about ${Math.ceil(seconds / 60)} minutes`
}

const leftOut = (preset: Preset) =>
  allParts.flatMap(({ name, seconds }) => (seconds[preset] === null ? name : [])).join(', ')
