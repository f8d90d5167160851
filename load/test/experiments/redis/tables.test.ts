import { expect, test } from 'vitest'
import type { Experiment } from '../../../src/experiments/experiment.ts'
import { experimentOf } from '../../../src/experiments/index.ts'
import { partOf } from '../../../src/reporting/part.ts'
import { resultOf, runsOf } from '../../support/result.ts'

const ioThreads = experimentOf('redis threads') as Experiment

// core/documents.test.ts checks the report of the published result.

test('with the load of the articles, their table stands next to ours', () => {
  const samples = [1, 4].flatMap((threads) =>
    runsOf(
      { command: 'MIX', bytes: 100, pipeline: 1, build: 'patched', threads },
      {
        perSecond: [50_000],
        cpuMicros: [8],
        userMicros: [2],
        kernelMicros: [6],
        mainCpuMicros: [8],
      },
    ),
  )
  const tableWith = (connections: number) => {
    const options = { bytes: [100], pipeline: [1], connections }
    const result = resultOf(ioThreads, samples, { options })
    return partOf({ experiment: ioThreads, result }).sections[0]?.table
  }
  expect(tableWith(400)?.caption).toContain('2 cores')
  expect(tableWith(400)?.rows.map((cells) => cells.join(' '))).toEqual([
    '1 50,000 86,200 1  2.00 6.00 25.0 % 92.0 68.0 89.0 3.00',
    '4 50,000 210,300 1.00 2.44 2.00 6.00 25.0 % 78.0 95.0 97.0 1.00',
  ])
  expect(tableWith(50)?.head).not.toContain('articles user %')
})

test('ceilings are those of the slower side: the main thread, or an I/O thread', () => {
  const at = (threads: number, mainCpuMicros: number, cpuMicros: number) =>
    runsOf(
      { command: 'GET', bytes: 64, pipeline: 8, build: 'patched', threads },
      { perSecond: [100], mainCpuMicros: [mainCpuMicros], cpuMicros: [cpuMicros] },
    )
  const result = resultOf(ioThreads, [...at(1, 5, 5), ...at(2, 2, 6), ...at(3, 2, 5)])
  const [gains] = partOf({ experiment: ioThreads, result }).sections
  expect(gains?.table.rows).toEqual([['100', '1.00', '1.00', '200,000', '250,000', '500,000']])
})
