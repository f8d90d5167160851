import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import {
  parseProcessStat,
  parseStat,
  readFamilyCpu,
  shareElsewhere,
} from '../../src/measure/machine-cpu.ts'

test('parses the parent and the CPU time of a process with any name', () => {
  const text =
    '4242 (odd) 7 (name) S 17 4242 4242 0 -1 4194304 900 80 0 0 150 50 20 5 20 0 1 0 100 5000000 800'
  expect(parseProcessStat(text)).toEqual({ parent: 17, cpuSeconds: 2.25 })
})

test('parses the CPU time of the machine: used, stolen and all', () => {
  const text = 'cpu  1000 20 300 5000 400 5 60 70 0 0\ncpu0 500 10 150 2500 200 2 30 35 0 0\n'
  expect(parseStat(text)).toEqual({ used: 13.85, stolen: 0.7, all: 68.55 })
})

test('calculates the share of other programs and other guests', () => {
  const before = { used: 10, stolen: 1, all: 100 }
  const after = { used: 16, stolen: 2, all: 120 }
  expect(shareElsewhere(before, after, 4)).toBeCloseTo((6 - 4 + 1) / 20)
  expect(shareElsewhere(before, after, 7)).toBeCloseTo(1 / 20)
  expect(shareElsewhere(before, null, 4)).toBeNull()
})

test.runIf(process.platform === 'linux')('includes children, also exited ones', async () => {
  const before = (await readFamilyCpu(process.pid)) ?? Number.NaN
  const burn = 'while (process.cpuUsage().user < 100_000);'
  execFileSync(process.execPath, ['-e', burn])
  const after = (await readFamilyCpu(process.pid)) ?? Number.NaN
  expect(after - before).toBeGreaterThan(0.08)
  expect(await readFamilyCpu(2 ** 30)).toBeNull()
})
