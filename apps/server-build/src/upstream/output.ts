import { stripVTControlCharacters } from 'node:util'

/** `left-out`: the suite skipped the test because of a tag or an option. */
export type TestStatus = 'passed' | 'failed' | 'left-out'

export interface TestResult {
  name: string
  status: TestStatus
  /** The suite's message about a failure, truncated. */
  detail?: string
}

/** The parsed output of a file. */
export interface SuiteOutput {
  /** One result per name. A test that ran several times, as in a loop, has failed if it failed once. */
  tests: TestResult[]
  /** Whether the suite reached the end of the file; it also does with failed tests. */
  finished: boolean
  /** Why the suite did not reach the end, truncated. */
  reason?: string
}

const MAX_DETAIL_LENGTH = 2_000

// Other output without a line break may precede a result. At its end, the suite repeats failures after
// three stars.
const RESULT = /^(?!\*\*\* )[^[]*\[(ok|err|exception|ignore|skip|TIMEOUT)\]: (.*)$/
const DURATION = / \(\d+ ms\)$/
const FILE_DONE = /^\[\d+\/\d+ done\]: /
const THE_END = /^ *The End$/
const RUNNING_TEST = /^"test (?:"(.+?)"|\{(.+?)\}) \{$/m

/** Parses the output of upstream's `./runtest`, with or without colours. */
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

/** Joins the lines of each result: names and error messages may have several lines. */
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

/** Parses the output of upstream's `./runtest-cluster` and `./runtest-sentinel`. */
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
      fail('The test did not end.')
      // If the line has no result, it ends with other output or nothing.
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
  fail('The test did not end.')
  const finished = ended && reason === undefined
  return { tests: byName(found), finished, ...(!finished && { reason: reason ?? tail(output) }) }
}

/** A failure that the suite reports without the name of a test. */
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
  return trimmed.length > MAX_DETAIL_LENGTH ? `${trimmed.slice(0, MAX_DETAIL_LENGTH)} …` : trimmed
}

function tail(output: string): string {
  return stripVTControlCharacters(output).trim().slice(-MAX_DETAIL_LENGTH)
}
