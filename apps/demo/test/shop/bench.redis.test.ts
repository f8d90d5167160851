import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const bench = fileURLToPath(new URL('../../bench/seen-before.ts', import.meta.url))

test('the benchmark of "seen before?" has a row for each case', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [bench, '0.02', '1'])
  const rows = stdout.trim().split('\n').slice(2)
  expect(rows).toHaveLength(2 * 3 * 4)
  for (const row of rows) expect(row).toMatch(/^(\| [^|]+ ){3}(\| \d+\.\d ){2}\| [\d,]+ \|$/)
  expect(rows[1]).toMatch(/\| SETBIT \| sequential \| (9|10)\./)
})
