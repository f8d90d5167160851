import { expect, test } from 'vitest'
import { runExperiment } from '../support/experiment.ts'

test('pools counts the connections that callers open when all are in use', async () => {
  const { text, result } = await runExperiment('pools', ['--quick', '--callers=4,8', '--sizes=1,4'])
  const opening = result.samples.filter(({ values }) => Number(values.connectionsPerSecond) > 0)
  const nameOf = ({ case: one }: (typeof opening)[number]) =>
    `${one.pool} ${one.callers} ${one.size}`
  expect(opening.map(nameOf)).toEqual(['overflow 4 1', 'overflow 8 1', 'overflow 8 4'])
  expect(result.samples).toHaveLength(2 * 4 * 2)
  expect(text).toMatch(/^8 callers over loopback: overflow with 4 connections opens [\d,]+ more/m)
})
