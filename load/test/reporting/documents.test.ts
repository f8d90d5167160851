import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import { expect, test } from 'vitest'
import { withFigures } from '../../src/reporting/document.ts'

test.each(['store-benchmark.md'])('docs/%s has the figures of load/results', async (name) => {
  const text = await readFile(join(repository, 'docs', name), 'utf8')
  expect(text).toBe(await withFigures(text))
})
