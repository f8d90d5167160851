import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { fillDocument, fillTables } from '../../src/redis/document.ts'

const docs = new URL('../../../docs/', import.meta.url)

const table = (cell: string) => ({ head: ['way', 'CPU µs\n(range)'], rows: [['TCP', cell]] })

test('the tables below the marks are those of the files, and all else stays', async () => {
  const text = [
    'Before.\n\n<!-- a.json, table 2 -->\n\n| old | table |\n| --- | ----: |\n| x | y |\n\nBetween.\n',
    '<!-- a.json, table 1 -->\n\nAfter, | with a bar.\n\n| another | table |\n',
  ].join('\n')
  const resultOf = async () => ({ tables: [table('1'), table('2 *')] })
  const { filled, without } = await fillTables(text, resultOf)
  expect(without).toEqual([])
  expect(filled).toBe(
    [
      'Before.\n\n<!-- a.json, table 2 -->\n\n| way | CPU µs (range) |\n| --- | -------------: |',
      '| TCP |           2 \\* |\n\nBetween.\n\n<!-- a.json, table 1 -->\n',
      '| way | CPU µs (range) |\n| --- | -------------: |\n| TCP |              1 |\n',
      'After, | with a bar.\n\n| another | table |\n',
    ].join('\n'),
  )
  expect(await fillTables(filled, resultOf)).toEqual({ filled, without })
  // A file of before there were tables in them.
  const old = await fillTables(text, async () => ({}))
  expect(old).toEqual({ filled: text, without: ['a.json'] })
})

test('a table that there is not is a problem, and the document stays as it is', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'onetrip-document-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'document.md')
  const text = '<!-- a.json, table 2 -->\n'
  await writeFile(path, text)
  await expect(fillDocument(path)).rejects.toThrow('a.json cannot be read')
  await writeFile(join(folder, 'a.json'), JSON.stringify({ tables: [table('1')] }))
  await expect(fillDocument(path)).rejects.toThrow('has 1 tables, and not number 2.')
  expect(await readFile(path, 'utf8')).toBe(text)
})

test('docs/redis-experiments.md has the tables of its files', async () => {
  const text = await readFile(new URL('redis-experiments.md', docs), 'utf8')
  const resultOf = async (file: string) => JSON.parse(await readFile(new URL(file, docs), 'utf8'))
  expect(text).toBe((await fillTables(text, resultOf)).filled)
  expect(text).toMatch(/^<!-- \S+\.json, table \d+ -->$/m)
})
