import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { expectNothingLeft, runLoad } from '../support/run.ts'

test('--check prints new measurements and predictions', async () => {
  const state = await temporaryFolder()
  const args = ['capacity', '--check', '10k', '--quick']
  const check = await runLoad({ state, args, until: /^Memory of Redis/ })
  expect(await check.exited).toEqual({ code: 0, signal: null })
  const text = check.output.map((line) => line.trimEnd()).join('\n')
  const row = /^ *10,000 +5 +([\d.]+) MB +([\d.]+) MB +[+-][\d.]+ %$/m.exec(text)
  const [predicted, measured] = row?.slice(1).map(Number) ?? []
  // With few sessions, many slots of the cluster are empty and need no memory.
  expect(Number(predicted) / Number(measured)).toBeGreaterThan(0.5)
  expect(Number(predicted) / Number(measured)).toBeLessThan(2)
  expect(text).toMatch(/^ *3 +16 +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +[+-][\d.]+ % +[\d.]+$/m)
  await expectNothingLeft(state)
}, 180_000)
