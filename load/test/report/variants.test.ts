import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { descriptions, variantsTable } from '../../src/report/parts/variants.ts'

test('docs/method.md describes the variants as the report does', async () => {
  const method = await readFile(new URL('../../../docs/method.md', import.meta.url), 'utf8')
  const rows = [...method.matchAll(/^\| `([\w-]+)` +\| (.*?) +\|$/gm)]
  const plain = (text: string) => text.replaceAll('`', '').replaceAll('’', "'")
  const described = Object.entries(descriptions).map(([name, text]) => [name, plain(text)])
  expect(rows.map(([, name, text = '']) => [name, plain(text)])).toEqual(described)
})

test('a result is told what its own variants are', () => {
  expect(variantsTable(['batch', 'of tomorrow']).rows.map(([name]) => name)).toEqual(['batch'])
})
