import { expect, test } from 'vitest'
import type { Case } from '../../src/experiment/shape.ts'
import { ioThreads } from '../../src/experiments/io-threads/io-threads.ts'
import { partOf } from '../../src/reporting/part.ts'
import { resultOf, runsOf } from '../support/result.ts'

const at = (bytes: number, threads: number): Case => ({
  command: 'GET',
  bytes,
  pipeline: 8,
  build: 'patched',
  threads,
})
/** CPU time of the main thread and of all threads, in both rounds. */
const cpu = (main: number, all: number) => ({
  mainCpuMicros: [main, main],
  cpuMicros: [all, all],
})

const part = partOf({
  experiment: ioThreads,
  result: resultOf(ioThreads, [
    ...runsOf(at(64, 1), { perSecond: [100, 100], ...cpu(4, 4) }),
    ...runsOf(at(64, 2), { perSecond: [50, 90], ...cpu(1, 6) }),
    ...runsOf(at(64, 3), { perSecond: [120, 105], ...cpu(1, 7) }), // not in every round
    ...runsOf(at(16_384, 1), { perSecond: [100, 100], ...cpu(10, 10) }),
    ...runsOf(at(16_384, 2), { perSecond: [50, 90.5], ...cpu(2, 12) }), // 9.5 % lower in a round
    ...runsOf(at(16_384, 3), { perSecond: [160, 170], ...cpu(5, 12) }, { doubts: ['crowded'] }),
  ]),
})
const [gains, extrapolation, all] = part.sections.flatMap(({ tables }) => tables)
const column = (table: typeof gains, head: string | RegExp) => {
  const index = table?.head.findIndex((one) => one.match(head)) ?? -1
  return table?.rows.map((row) => row[index])
}

test('a gain or loss is at least 10 % in every round, and has the marks of its row', () => {
  expect(column(gains, 'value')).toEqual(['64 B', '16 kB'])
  expect(column(gains, 'measured')).toEqual(['loses with 2', 'gains with 3'])
  expect(column(gains, /^× with 3/)).toEqual(['1.12 (1.05-1.20)', '1.65 (1.60-1.70) !'])
  expect(part.claims[0]).toMatch(
    /raise the rate .* in 1 of 4 cases \(64 B: 0 of 2, 16 kB: 1 of 2\)\. The largest change is to 1\.65 .*value 16 kB, I\/O/,
  )
  expect(part.claims[1]).toMatch(
    /lower the rate .* in 1 of 4 cases \(64 B: 1 of 2, 16 kB: 0 of 2\)\. The largest change is to 0\.67 .*value 64 B, I\/O/,
  )
  expect(all?.rows).toHaveLength(6)
})

test('the slower of main thread and I/O threads determines the extrapolated rate', () => {
  // 4 / max(1, 5) and 4 / max(1, 6 / 2); 10 / max(2, 10) and 10 / max(5, 7 / 2).
  expect(extrapolation?.caption).toMatch(/^EXTRAPOLATED/)
  expect(column(extrapolation, /CPU µs, 3$/)).toEqual(['1.00 + 6.00', '5.00 + 7.00'])
  expect(column(extrapolation, 'from')).toEqual(['3', '3'])
  expect(column(extrapolation, 'at most')).toEqual(['1.33 times with 3', '2.00 times with 3'])
  expect(part.claims[2]).toMatch(
    /^Extrapolated .* not measured: .* are 3 in 2 of 2 loads .*\. The largest gain is 2\.00 times with 3/,
  )
})

test('disturbed rows are not used for gains', () => {
  const busy = { values: { elsewhere: 0.5 } }
  const samples = [
    ...runsOf(at(64, 1), { perSecond: [100], ...cpu(4, 4) }, busy),
    ...runsOf(at(64, 3), { perSecond: [200], ...cpu(1, 5) }),
  ]
  const { sections, claims } = partOf({
    experiment: ioThreads,
    result: resultOf(ioThreads, samples),
  })
  expect(column(sections[0]?.tables[0], '× with 3')).toEqual(['2.00'])
  expect(sections[0]?.tables[0]?.head).not.toContain('measured')
  expect(claims[0]).toMatch(/^Extrapolated/)
})

test('a result of one setting has no gains and no extrapolation', () => {
  const samples = runsOf(at(64, 1), { perSecond: [100], ...cpu(4, 4) })
  const { sections, claims } = partOf({
    experiment: ioThreads,
    result: resultOf(ioThreads, samples),
  })
  expect(sections.map(({ title }) => title)).toEqual(['Every setting'])
  expect(claims).toEqual([])
})
