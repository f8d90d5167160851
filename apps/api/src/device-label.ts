type Names = readonly (readonly [name: string, pattern: RegExp])[]

// The first match counts: browsers also name those that they are compatible with.
const browsers: Names = [
  ['Edge', /Edg(e|A|iOS)?\//],
  ['Opera', /OPR\//],
  ['Samsung Internet', /SamsungBrowser\//],
  ['Firefox', /Firefox\/|FxiOS\//],
  ['Chrome', /Chrome\/|CriOS\//],
  ['Safari', /Safari\//],
]
const systems: Names = [
  ['iPhone', /iPhone/],
  ['iPad', /iPad/],
  ['Android', /Android/],
  ['Windows', /Windows/],
  ['ChromeOS', /CrOS/],
  ['macOS', /Mac OS X/],
  ['Linux', /Linux/],
]

/**
 * A name by which users recognize a device, made from its `User-Agent`: `Firefox on Windows`, or `curl` for other
 * programs. It is empty without a `User-Agent`, contains no versions, and is a valid label for any header.
 */
export function deviceLabel(userAgent = ''): string {
  const first = (names: Names) => names.find(([, pattern]) => pattern.test(userAgent))?.[0]
  const program = first(browsers) ?? /^(?!Mozilla\b)[\w.-]{1,40}/.exec(userAgent)?.[0]
  return [program, first(systems)].filter((name) => name !== undefined).join(' on ')
}
