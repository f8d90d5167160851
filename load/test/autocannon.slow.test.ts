import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import { expect, test } from 'vitest'

const text = readFileSync(join(repository, 'docs/measurements/autocannon.md'), 'utf8')
const found = [...text.matchAll(/```js\n(.*?)```\n+> (.*?)\n/gs)]
const programs = found.map(([, program = '', shown = '']) => ({ program, shown }))

test('docs/measurements/autocannon.md has two programs', () => {
  expect(programs).toHaveLength(2)
})

test.for(programs)('a program shows a defect of autocannon: $shown', ({ program, shown }) => {
  expect(program.split('\n').length).toBeLessThanOrEqual(30)
  const args = ['--input-type=module', '--eval', program]
  const ended = spawnSync(process.execPath, args, { cwd: repository, encoding: 'utf8' })
  // On a busy machine every answer is late, which hides the defect of the clock.
  if (ended.status === 0 && shown.includes('median')) return
  const withoutNumbers = (line: string) => line.replaceAll(/\d+/g, 'N')
  expect(withoutNumbers(ended.stderr)).toContain(withoutNumbers(shown))
})
