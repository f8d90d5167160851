/**
 * The reports of AddressSanitizer, LeakSanitizer and ThreadSanitizer in the output of a program, by a name that
 * does not vary between runs, such as `data race: readQueryFromClient and writeToClient`.
 */
export function reportsIn(lines: readonly string[]): Map<string, string> {
  const reports = new Map<string, string>()
  let open: string[] | undefined
  for (const line of lines) {
    if (/(WARNING|ERROR): (Thread|Address|Leak)Sanitizer: /.test(line)) open = []
    open?.push(line)
    if (!open || !/^SUMMARY: /.test(line)) continue
    reports.set(nameOf(open), open.join('\n'))
    open = undefined
  }
  // An incomplete report, as of a killed program, counts, too.
  if (open) reports.set(nameOf(open), open.join('\n'))
  return reports
}

/** The kind of a report and the innermost functions of Redis in its first two stacks. */
function nameOf(report: readonly string[]): string {
  const kind = /Sanitizer: ([a-zA-Z- ]+?)(?: \(| on | detected|:|$)/.exec(report[0] ?? '')?.[1]
  const functions: string[] = []
  let inStack = false
  for (const line of report) {
    const [, name] = /^ *#\d+ (?:0x[0-9a-f]+ in )?(\w+) .*\.c:\d+/.exec(line) ?? []
    if (name && !inStack) functions.push(name)
    inStack = name !== undefined || (inStack && /^ *#\d+ /.test(line))
  }
  return `${kind}: ${functions.slice(0, 2).sort().join(' and ') || 'unknown'}`
}
