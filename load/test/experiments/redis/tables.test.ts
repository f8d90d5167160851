import { expect, test } from 'vitest'
import type { Experiment } from '../../../src/experiment/experiment.ts'
import { experimentOf } from '../../../src/experiments.ts'
import { partOf } from '../../../src/reporting/part.ts'
import { resultOf, runsOf } from '../../support/result.ts'

const ioThreads = experimentOf('redis threads') as Experiment

// core/documents.test.ts checks the report of the published result.

test('with the load of the source articles, their table stands next to ours', () => {
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
    return partOf({ experiment: ioThreads, result }).sections[0]?.tables[0]
  }
  expect(tableWith(400)?.caption).toContain('2 cores')
  expect(tableWith(400)?.rows).toEqual([
    ['1', '50,000', '86,200', '2.00', '6.00', '25.0 %', '92.0', '68.0'],
    ['4', '50,000', '210,300', '2.00', '6.00', '25.0 %', '78.0', '95.0'],
  ])
  expect(tableWith(50)?.head).not.toContain('articles user %')
})

test('disturbed rows are not used for gains', () => {
  const columnsWith = (elsewhere: number) => {
    const at = (threads: number, perSecond: number, mainCpuMicros: number) =>
      runsOf(
        { command: 'GET', bytes: 64, pipeline: 8, build: 'patched', threads },
        { perSecond: [perSecond], mainCpuMicros: [mainCpuMicros], cpuMicros: [5] },
        { values: { elsewhere } },
      )
    const result = resultOf(ioThreads, [...at(1, 100, 5), ...at(3, 200, 1)])
    return partOf({ experiment: ioThreads, result }).sections[0]?.tables[0]?.head
  }
  expect(columnsWith(0.02)).toContain('measured')
  expect(columnsWith(0.5)).not.toContain('measured')
})
