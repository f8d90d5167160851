import { closest, distance } from 'fastest-levenshtein'

/** The names of all options, which TypeScript checks to be complete. */
export type NamesOf<Options> = Readonly<Record<keyof Options, true>>

/**
 * Refuses options that do not exist: they could not take effect. An option that is undefined is ignored.
 *
 * @param instead Why there is no such option, for names that users may expect.
 * @throws TypeError naming the option and what may have been meant.
 */
export function checkOptionNames(
  of: string,
  options: object | undefined,
  names: Readonly<Record<string, true>>,
  instead: Readonly<Record<string, string>> = {},
): void {
  for (const [name, value] of Object.entries(options ?? {})) {
    if (value === undefined || Object.hasOwn(names, name)) continue
    const hint = instead[name] ?? meant(name, Object.keys(names))
    throw new TypeError(`${of} has no option ${name}: ${hint}`)
  }
}

/** Names that differ in more than a quarter of their characters have nothing to do with each other. */
function meant(name: string, names: readonly string[]): string {
  const nearest = closest(name, names)
  if (distance(name.toLowerCase(), nearest.toLowerCase()) <= Math.ceil(name.length / 4))
    return `did you mean ${nearest}?`
  return `its options are ${names.join(', ')}`
}
