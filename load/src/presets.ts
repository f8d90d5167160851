import { type Command, Option } from 'commander'

/** What `--quick` and `--full` set, unless the user says otherwise. */
export interface Presets<Options> {
  quick: Partial<Options>
  full: Partial<Options>
}

/** Adds `--quick` and `--full` to a command. */
export function addPresets(command: Command, about: { quick: string; full: string }): Command {
  return command
    .addOption(new Option('--quick', about.quick).conflicts('full'))
    .addOption(new Option('--full', about.full).conflicts('quick'))
}

/** The options as given, else as the preset has them that was asked for, else the defaults. */
export function withPresets<Options extends object>(
  command: Command,
  presets: Presets<Options>,
): Options {
  const { quick, full } = command.opts<{ quick?: boolean; full?: boolean }>()
  return unlessGiven(command, quick ? presets.quick : full ? presets.full : {})
}

/** The options as given, else the values, else the defaults. */
export function unlessGiven<Options extends object>(
  command: Command,
  values: Partial<Options>,
): Options {
  const open = Object.entries(values).filter(([name]) => !isGiven(command, name))
  return { ...command.opts<Options>(), ...Object.fromEntries(open) }
}

/** Whether the user gave an option, on the command line or in the environment. */
function isGiven(command: Command, name: string): boolean {
  const source = command.getOptionValueSource(name)
  return source !== undefined && source !== 'default'
}
