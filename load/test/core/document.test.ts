import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { withFigures } from '../../src/reporting/document.ts'
import { ioThreadsResult } from './support/results.ts'

async function filled(text: string): Promise<string> {
  const folder = await temporaryFolder()
  await writeFile(join(folder, 'a.json'), JSON.stringify(ioThreadsResult().result))
  return await withFigures(text, folder)
}

const mark = (what: string) => `<!-- a.json, ${what} -->`

test('what stands below the marks is what the results have, and all else stays', async () => {
  const text = [
    `Before.\n\n${mark('table 1')}\n\n| old | table |\n| --- | ----: |\n| x | y |\n\nBetween.\n`,
    `${mark('provenance')}\n${mark('claims')}\n\n- It cost 3 µs.\n- Old.\n\n- Stays.\n`,
    `${mark('table 2')}\n\nAfter, | with a bar.\n\n| another | table |\n`,
  ].join('\n')
  const once = await filled(text)
  expect(once).toMatch(/^Before\.\n\n<!-- a.json, table 1 -->\n\n\| command /)
  expect(once).toMatch(/\|\n\nBetween\.\n/)
  expect(once).not.toMatch(/old|It cost 3/)
  expect(once).toMatch(
    /provenance -->\n\n- 2026-11-21, 10:00 UTC: `npm run load -- io-threads`\. EPYC, .*; 2\.00 % of/,
  )
  expect(once).toMatch(/claims -->\n\n- The ceiling(.|\n)*- ! More threads .*\n\n- Stays\.\n/)
  expect(once).toMatch(/table 2 -->\n\n\| what (.|\n)*\|\n\nAfter, \| with a bar\.\n\n\| another/)
  expect(await filled(once)).toBe(once)
})

test.each([
  ['no marks at all', 'It has no line such as'],
  [mark('table 9'), 'a.json has 2 tables, and no table 9'],
  ['<!-- b.json, table 1 -->', 'b.json cannot be read'],
])('%s', async (text, message) => {
  await expect(filled(text)).rejects.toThrow(message)
})
