import { expect, test } from 'vitest'
import { ioThreads } from '../../src/experiments/io-threads/io-threads.ts'
import { partOf } from '../../src/reporting/part.ts'
import { resultOf, runsOf } from '../support/result.ts'

// core/documents.test.ts checks the report of the published result.

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
