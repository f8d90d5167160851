import { redactedOptions } from './drivers/http/request.ts'

/**
 * Quotes arguments for a shell. Values that may contain a credential are replaced by `…`; the name of a header
 * is kept.
 */
export function commandLineOf(program: string, args: readonly string[]): string {
  const shown = args.map((arg, index) => {
    const before = args[index - 1] ?? ''
    if (redactedOptions.includes(before)) return quoted(redacted(before, arg))
    const option = redactedOptions.find((name) => arg.startsWith(`${name}=`))
    if (option === undefined) return quoted(arg)
    return quoted(`${option}=${redacted(option, arg.slice(option.length + 1))}`)
  })
  return [program, ...shown].join(' ')
}

function redacted(option: string, value: string): string {
  const [name = ''] = option === '--header' ? (/^[\w-]+: */.exec(value) ?? []) : []
  return `${name}…`
}

const quoted = (arg: string) =>
  /^[\w@%+=:,./…-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", String.raw`'\''`)}'`
