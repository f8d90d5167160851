import { removedOptions } from './removed-options.ts'

/** The names of all options. TypeScript checks that none is missing. */
export type NamesOf<Options> = Readonly<Record<keyof Options, unknown>>

/**
 * Rejects options that do not exist. Ignores options that are undefined.
 *
 * @param instead What to use instead, for names that users may expect.
 * @throws TypeError naming the option and those that exist.
 */
export function checkOptionNames(
  of: string,
  options: object | undefined,
  names: Readonly<Record<string, unknown>>,
  instead: Readonly<Record<string, string>> = {},
): void {
  for (const [name, value] of Object.entries(options ?? {})) {
    if (value === undefined || Object.hasOwn(names, name)) continue
    const hint =
      instead[name] ?? removedOptions[name] ?? `its options are ${Object.keys(names).join(', ')}`
    throw new TypeError(`${of} has no option ${name}: ${hint}`)
  }
}
