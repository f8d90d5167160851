import Table from 'cli-table3'
import { type Difference, endOfFile, type Seen, type Verdict, withoutNumbers } from './compare.ts'
import type { FileComparison, ResultRecord } from './record.ts'
import { isOurs } from './suites.ts'

// Columns are separated by spaces, with one line below the header.
const chars = {
  ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '' },
  ...{ bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' },
  ...{ left: '', 'left-mid': '', mid: '', 'mid-mid': '' },
  ...{ right: '', 'right-mid': '', middle: '  ' },
}

const words: Record<Verdict, string> = {
  worse: 'WORSE',
  better: 'better',
  flaky: 'flaky',
  open: 'not run again',
}

/** Lines shown of a failure message; the result file has more. */
const DETAIL_LINES = 10

/** Formats comparisons as text and tables. */
export function report(record: ResultRecord, comparisons: readonly FileComparison[]): string {
  const { reference, candidate } = record.builds
  const title =
    `Upstream's tests of Redis ${candidate.redisVersion} (${candidate.source}): ` +
    `${candidate.build}-${candidate.key.slice(0, 12)} against ${reference.build}-${reference.key.slice(0, 12)}`
  const parts = [
    title,
    totals(comparisons),
    differing(record, comparisons),
    ...failures(record, comparisons),
    failing(comparisons),
  ]
  return parts.filter((part) => part !== '').join('\n\n')
}

/** The number of tests with a verdict. */
export function count(comparisons: readonly FileComparison[], verdict: Verdict): number {
  return comparisons.flatMap(({ differences }) => differences).filter(has(verdict)).length
}

/** Formats a comparison as one line. */
export function describe({ tests, same, differences, failedInBoth }: FileComparison): string {
  const counted = `${tests} ${tests === 1 ? 'test' : 'tests'}`
  if (differences.length > 0) {
    const list = differences.map(({ name, verdict }) => `${name} (${words[verdict]})`)
    return `${counted}, different: ${list.join(', ')}`
  }
  const notes = [
    same.failed > 0 ? `${same.failed} failed on both` : '',
    failedInBoth.includes(endOfFile) ? 'both stop before the end' : '',
    same['left-out'] > 0 ? `${same['left-out']} skipped` : '',
  ]
  return [counted, 'no difference', ...notes.filter((note) => note !== '')].join(', ')
}

function totals(comparisons: readonly FileComparison[]): string {
  const table = new Table({
    head: [
      'I/O threads',
      'files',
      'tests',
      'pass on both',
      'skipped',
      'fail on both',
      'flaky',
      'not run again',
      'better',
      'WORSE',
    ],
    colAligns: Array.from({ length: 10 }, () => 'right' as const),
    chars,
    style: plain,
  })
  for (const ioThreads of new Set(comparisons.map((one) => one.ioThreads))) {
    const rows = comparisons.filter((one) => one.ioThreads === ioThreads)
    const sum = (value: (row: FileComparison) => number) =>
      rows.reduce((total, row) => total + value(row), 0)
    table.push([
      ioThreads,
      rows.length,
      sum(({ tests }) => tests),
      sum(({ same }) => same.passed),
      sum(({ same }) => same['left-out']),
      sum(({ same }) => same.failed),
      ...(['flaky', 'open', 'better', 'worse'] as const).map((verdict) => count(rows, verdict)),
    ])
  }
  return table.toString()
}

const plain = { head: [], border: [], 'padding-left': 0, 'padding-right': 0, compact: true }

function differing({ builds }: ResultRecord, comparisons: readonly FileComparison[]): string {
  const rows = comparisons.flatMap(({ file, ioThreads, differences }) =>
    differences.map((difference) => ({ file, ioThreads, ...difference })),
  )
  if (rows.length === 0) return 'No test differs.'
  const table = new Table({
    head: ['I/O threads', 'file', 'test', builds.reference.build, builds.candidate.build, ''],
    colAligns: ['right', 'left', 'left', 'left', 'left', 'left'],
    colWidths: [null, null, 46, null, null, null],
    wordWrap: true,
    chars,
    style: plain,
  })
  for (const { file, ioThreads, name, verdict, ...seen } of rows.toSorted(worstFirst)) {
    table.push([
      ioThreads,
      file,
      name,
      isOurs(file) ? '-' : runs(seen.reference),
      runs(seen.candidate),
      words[verdict],
    ])
  }
  return `Differences, with the number of passed runs:\n${table.toString()}`
}

const order: Verdict[] = ['worse', 'open', 'flaky', 'better']

function worstFirst(one: Difference, other: Difference): number {
  return order.indexOf(one.verdict) - order.indexOf(other.verdict)
}

function runs(seen: readonly Seen[]): string {
  return `${seen.filter((status) => status === 'passed').length} of ${seen.length}`
}

/** The suite's message about each test that is worse. */
function failures({ runs }: ResultRecord, comparisons: readonly FileComparison[]): string[] {
  return comparisons.flatMap(({ file, ioThreads, differences }) =>
    differences.filter(has('worse')).map(({ name }) => {
      const details = runs
        .filter((run) => run.file === file && run.ioThreads === ioThreads)
        .filter(({ role }) => role === 'candidate')
        .map(({ tests, reason }) =>
          name === endOfFile
            ? reason
            : tests.find(
                (test) => test.detail && [test.name, withoutNumbers(test.name)].includes(name),
              )?.detail,
        )
      const detail = details.find((text) => text !== undefined) ?? 'The test did not appear.'
      const lines = detail.split('\n').slice(0, DETAIL_LINES)
      return `${file}, I/O threads ${ioThreads}: ${name}\n${lines.map((line) => `    ${line}`).join('\n')}`
    }),
  )
}

function failing(comparisons: readonly FileComparison[]): string {
  const lines = comparisons.flatMap(({ file, ioThreads, failedInBoth }) =>
    failedInBoth.map((name) => `  ${file}, I/O threads ${ioThreads}: ${name}`),
  )
  return lines.length > 0 ? `Failures on both:\n${lines.join('\n')}` : ''
}

function has(verdict: Verdict): (difference: Difference) => boolean {
  return (difference) => difference.verdict === verdict
}
