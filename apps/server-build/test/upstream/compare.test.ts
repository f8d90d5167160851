import { expect, test } from 'vitest'
import {
  compare,
  endOfFile,
  type Results,
  type Seen,
  type Verdict,
  verdictOn,
} from '../../src/upstream/compare.ts'

function results(statuses: Parameters<typeof Object.entries>[0]): Results {
  return new Map(Object.entries(statuses)) as Results
}

test('counts equal results, without the additional result for the end of the file', () => {
  const run = results({ a: 'passed', b: 'failed', c: 'left-out', [endOfFile]: 'failed' })
  expect(compare([run], [run])).toEqual({
    tests: 3,
    same: { passed: 1, failed: 1, 'left-out': 1 },
    failedInBoth: ['b', endOfFile],
    differences: [],
  })
})

test('a test that appears on only one build is a difference', () => {
  const whole = results({ a: 'passed', b: 'passed', [endOfFile]: 'passed' })
  const aborted = results({ a: 'passed', [endOfFile]: 'failed' })
  const runs = (first: Results) => [first, first, first]
  const { differences, tests } = compare(runs(whole), runs(aborted))
  expect(tests).toBe(2)
  expect(differences.map(({ name, verdict }) => [name, verdict])).toEqual([
    ['b', 'worse'],
    [endOfFile, 'worse'],
  ])
})

test('random numbers in names are not a difference', () => {
  const runs = [69873, 101882, 56947].map((x) =>
    results({ 'starts 5 servers': 'passed', [`is consistent (x = ${x})`]: 'passed' }),
  )
  expect(compare(runs.slice(0, 1), runs.slice(1, 2))).toMatchObject({
    tests: 2,
    same: { passed: 2 },
    differences: [],
  })
  const failing = runs.map((run) => new Map(run).set('is consistent (x = 7)', 'failed' as const))
  expect(compare(runs, failing).differences).toEqual([
    {
      name: 'is consistent (x = N)',
      verdict: 'worse',
      reference: ['passed', 'passed', 'passed'],
      candidate: ['failed', 'failed', 'failed'],
    },
  ])
})

test('a name in both runs is not merged with names that are equal without numbers', () => {
  const reference = results({ 'size 16': 'passed', 'size 32': 'failed' })
  const candidate = results({ 'size 16': 'failed', 'size 32': 'passed' })
  const { differences } = compare([reference], [candidate])
  expect(differences.map(({ name }) => name)).toEqual(['size 16', 'size 32'])
})

const cases: [verdict: Verdict, reference: string, candidate: string, why: string][] = [
  ['open', '+', '-', 'it was not run again'],
  ['worse', '++++++', '-++-++', 'it fails again, and never on the reference'],
  ['flaky', '++++++', '-+++++', 'it fails once and never again'],
  ['flaky', '++-+++', '-++-++', 'it fails on the reference, too'],
  ['worse', '++-+++', '------', 'it always fails, and on the reference now and then'],
  ['flaky', '-+----', '------', 'it passes on the reference by luck'],
  ['worse', '++++++', '....+.', 'it always comes up on the reference, and seldom here'],
  ['flaky', '+.....', '......', 'its name is another one in each run'],
  ['flaky', '......', '+.....', 'the same, seen from the other side'],
  ['worse', '......', '-...-.', 'only its failures have a name'],
  ['worse', '++++++', 'oooooo', 'the suite leaves it out here only'],
  ['better', '-+++-+', '++++++', 'it fails on the reference only'],
  ['better', '------', '++++++', 'it always fails on the reference only'],
]

const seen: Record<string, Seen> = { '+': 'passed', '-': 'failed', o: 'left-out', '.': 'absent' }

function seenAs(signs: string): Seen[] {
  return [...signs].map((sign) => seen[sign] ?? 'absent')
}

test.each(cases)('%s: %s against %s, since %s', (verdict, reference, candidate) => {
  expect(verdictOn(seenAs(reference), seenAs(candidate))).toBe(verdict)
})
