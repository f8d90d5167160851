import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { parseProcessStat, readFamilyCpu, shareElsewhere } from '../src/measure/machine-cpu.ts'

test('a process tells its parent and its CPU time, whatever its name is', () => {
  const text =
    '4242 (odd) 7 (name) S 17 4242 4242 0 -1 4194304 900 80 0 0 150 50 20 5 20 0 1 0 100 5000000 800'
  expect(parseProcessStat(text)).toEqual({ parent: 17, cpuSeconds: 2.25 })
})

test('what went elsewhere: to other programs, and to other guests', () => {
  const before = { used: 10, stolen: 1, all: 100 }
  const after = { used: 16, stolen: 2, all: 120 }
  expect(shareElsewhere(before, after, 4)).toBeCloseTo((6 - 4 + 1) / 20)
  expect(shareElsewhere(before, after, 7)).toBeCloseTo(1 / 20)
  expect(shareElsewhere(before, null, 4)).toBeNull()
})

test.runIf(process.platform === 'linux')('children count as ours, the dead ones too', async () => {
  const before = (await readFamilyCpu(process.pid)) ?? Number.NaN
  const burn = 'while (process.cpuUsage().user < 300_000);'
  execFileSync(process.execPath, ['-e', burn])
  const after = (await readFamilyCpu(process.pid)) ?? Number.NaN
  expect(after - before).toBeGreaterThan(0.25)
  expect(await readFamilyCpu(2 ** 30)).toBeNull()
})
