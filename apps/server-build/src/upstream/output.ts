import { stripVTControlCharacters } from 'node:util'

/** `left-out`: the suite chose not to run it, by a tag or by an option. */
export type TestStatus = 'passed' | 'failed' | 'left-out'

export interface TestResult {
  name: string
  status: TestStatus
  /** What the suite said about a failure, shortened. */
  detail?: string
}

/** What a file's output tells. */
export interface SuiteOutput {
  /**
   * By name, which is how they are compared: one that came up more than once, as in a loop that goes on
   * for some seconds, has failed if it failed once.
   */
  tests: TestResult[]
  /** Whether the suite got to the end of the file; failed tests do not keep it from that. */
  finished: boolean
  /** Why it did not, shortened. */
  reason?: string
}

const LONGEST_DETAIL = 2_000

// What was printed without a line break may stand before a result; the suite repeats failures at its
// end behind three stars.
const RESULT = /^(?!\*\*\* )[^[]*\[(ok|err|exception|ignore|skip|TIMEOUT)\]: (.*)$/
const DURATION = / \(\d+ ms\)$/
const FILE_DONE = /^\[\d+\/\d+ done\]: /
const THE_END = /^ *The End$/
const RUNNING_TEST = /^"test (?:"(.+?)"|\{(.+?)\}) \{$/m

/** Reads the output of upstream's `./runtest`, with or without colours. */
export function parseRuntest(output: string): SuiteOutput {
  const reports = reportsIn(linesOf(output))
  const found: TestResult[] = []
  let reason: string | undefined
  for (const { kind, text } of reports.results) {
    if (kind === 'ok') {
      found.push({ name: text.replace(DURATION, ''), status: 'passed' })
    } else if (kind === 'err') {
      found.push(failure(text))
    } else if (kind === 'ignore' || kind === 'skip') {
      found.push({ name: text, status: 'left-out' })
    } else {
      reason ??= shortened(text)
      const running = RUNNING_TEST.exec(text)
      const name = running?.[1] ?? running?.[2]
      if (name) found.push({ name, status: 'failed', detail: shortened(text) })
    }
  }
  const finished = reports.ended && reason === undefined
  return { tests: byName(found), finished, ...(!finished && { reason: reason ?? tail(output) }) }
}

interface Report {
  kind: string
  text: string
}

/** Joins the lines that belong together: a name may have several, and what follows an error has. */
function reportsIn(lines: readonly string[]): { results: Report[]; ended: boolean } {
  const results: Report[] = []
  let open: Report | undefined
  for (const line of lines) {
    const [, kind, text] = RESULT.exec(line) ?? []
    if (kind !== undefined && text !== undefined) {
      open = { kind, text }
      results.push(open)
      if (isWhole(open)) open = undefined
    } else if (THE_END.test(line)) {
      return { results, ended: true }
    } else if (FILE_DONE.test(line)) {
      open = undefined
    } else if (open) {
      open.text += `\n${line}`
      if (isWhole(open)) open = undefined
    }
  }
  return { results, ended: false }
}

function isWhole({ kind, text }: Report): boolean {
  return kind === 'ignore' || kind === 'skip' || (kind === 'ok' && DURATION.test(text))
}

function failure(text: string): TestResult {
  const [, named] = /^([\s\S]+?) in tests\/\S+\.tcl(?:\n|$)/.exec(text) ?? []
  const [first = ''] = text.split('\n', 1)
  return { name: named ?? first, status: 'failed', detail: shortened(text) }
}

const TEST_BEGINS = /^\d\d:\d\d:\d\d> (.*)$/
const INSTANCES_END = /^(GOOD! No errors\.|WARNING \d+ test\(s\) failed\.)$/
const CAUGHT = /^FAILED: caught an error in the test /

/** Reads the output of upstream's `./runtest-cluster` and `./runtest-sentinel`. */
export function parseInstances(output: string): SuiteOutput {
  const found: TestResult[] = []
  let open: { name: string; text: string } | undefined
  let reason: string | undefined
  let ended = false
  const fail = (text: string) => {
    if (open) found.push({ name: open.name, status: 'failed', detail: shortened(text) })
    open = undefined
  }
  const lines = linesOf(output)
  for (const [index, line] of lines.entries()) {
    const [, test] = TEST_BEGINS.exec(line) ?? []
    if (test !== undefined) {
      fail('It did not end.')
      // Without a result in the same line, something else was printed there, or nothing.
      const [, name = test, text = ''] =
        /^(.*?): ((?:OK|FAILED: .*)?)$/.exec(test) ?? /^(.*): (.*)$/.exec(test) ?? []
      open = { name, text }
    }
    const text = test === undefined ? line : (open?.text ?? '')
    const broken = CAUGHT.test(text) || text.startsWith('>>>>>>>> ')
    if (open && text.endsWith('OK') && (test !== undefined || text === 'OK')) {
      found.push({ name: open.name, status: 'passed' })
      open = undefined
    } else if (broken) {
      const trace = shortened(lines.slice(index).join('\n'))
      reason ??= trace
      fail(trace)
    } else if (text.startsWith('FAILED: ')) {
      fail(text)
    } else if (text.startsWith('ERROR: Sentinel has leaked fds')) {
      found.push(nameless('No descriptor is left to a script', lines.slice(index)))
    } else if (text.startsWith('*** Crash report found')) {
      found.push(nameless('No server crashes', lines.slice(index)))
      break
    }
    if (INSTANCES_END.test(line)) ended = true
  }
  fail('It did not end.')
  const finished = ended && reason === undefined
  return { tests: byName(found), finished, ...(!finished && { reason: reason ?? tail(output) }) }
}

/** A failure that the suite counts without a test's name. */
function nameless(name: string, lines: readonly string[]): TestResult {
  return { name, status: 'failed', detail: shortened(lines.join('\n')) }
}

function linesOf(output: string): string[] {
  return stripVTControlCharacters(output).split('\n')
}

function byName(tests: readonly TestResult[]): TestResult[] {
  const merged = new Map<string, TestResult>()
  for (const test of tests) {
    const before = merged.get(test.name)
    if (!before || severity[test.status] > severity[before.status]) merged.set(test.name, test)
  }
  return [...merged.values()]
}

const severity: Record<TestStatus, number> = { 'left-out': 0, passed: 1, failed: 2 }

function shortened(text: string): string {
  const trimmed = text.trim()
  return trimmed.length > LONGEST_DETAIL ? `${trimmed.slice(0, LONGEST_DETAIL)} …` : trimmed
}

function tail(output: string): string {
  return stripVTControlCharacters(output).trim().slice(-LONGEST_DETAIL)
}
