import { closest, distance } from 'fastest-levenshtein'

/** The names of all options. TypeScript checks that none is missing. */
export type NamesOf<Options> = Readonly<Record<keyof Options, true>>

/**
 * Rejects options that do not exist. Ignores options that are undefined.
 *
 * @param instead What to use instead, for names that users may expect.
 * @throws TypeError naming the option and a similar one.
 */
export function checkOptionNames(
  of: string,
  options: object | undefined,
  names: Readonly<Record<string, true>>,
  instead: Readonly<Record<string, string>> = {},
): void {
  for (const [name, value] of Object.entries(options ?? {})) {
    if (value === undefined || Object.hasOwn(names, name)) continue
    const hint = instead[name] ?? suggestion(name, Object.keys(names))
    throw new TypeError(`${of} has no option ${name}: ${hint}`)
  }
}

/** Suggests the nearest name, if at most a quarter of the characters differ. */
function suggestion(name: string, names: readonly string[]): string {
  const nearest = closest(name, names)
  if (distance(name.toLowerCase(), nearest.toLowerCase()) <= Math.ceil(name.length / 4))
    return `did you mean ${nearest}?`
  return `its options are ${names.join(', ')}`
}
