/** The command line with arguments quoted for a shell. */
export const commandLineOf = (program: string, args: readonly string[]): string =>
  [program, ...args.map(quoted)].join(' ')

const quoted = (arg: string) =>
  /^[\w@%+=:,./…-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", String.raw`'\''`)}'`
