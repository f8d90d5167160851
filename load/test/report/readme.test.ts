import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import { expect, test } from 'vitest'
import { RESULTS, repositoryTexts, sourceOfReadme } from '../../src/report/readme.ts'

test.each(['README.md', RESULTS])('%s has the figures of the file that it names', async (name) => {
  const source = await sourceOfReadme()
  const found = await readFile(join(repository, name), 'utf8')
  const expected = (await repositoryTexts(source)).get(name)
  // To put it right: npm run load -- report <source> --readme
  expect(found).toBe(expected)
})
