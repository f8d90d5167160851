import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { fillDocument, fillMarks, readExperiment } from '../../src/redis/document.ts'
import { experimentResult } from '../report/support/results.ts'

const docs = fileURLToPath(new URL('../../../docs/', import.meta.url))

const table = (cell: string) => ({ head: ['way', 'CPU µs\n(range)'], rows: [['TCP', cell]] })

const result = experimentResult({
  ...{ date: '2026-11-21T14:20:59.123Z', command: 'npm run load -- redis info', elsewhere: 0.031 },
  ...{ tables: [table('1'), table('2 *')], conclusions: ['It costs 2 µs.', '* Not sure.'] },
})

test('what stands below the marks is what the files have, and all else stays', async () => {
  const text = [
    'Before.\n\n<!-- a.json, table 2 -->\n\n| old | table |\n| --- | ----: |\n| x | y |\n\nBetween.\n',
    '<!-- a.json, provenance -->\n<!-- a.json, conclusions -->\n\n- It cost 3 µs.\n- Old.\n\n- Stays.\n',
    '<!-- a.json, table 1 -->\n\nAfter, | with a bar.\n\n| another | table |\n',
  ].join('\n')
  const filled = await fillMarks(text, async () => result)
  expect(filled).toMatch(/^- 2026-11-21, 14:20 UTC: `npm run load -- redis info`\. .*; 3\.10 % of/m)
  expect(filled.replace(/^- 2026.*/m, '- Made.')).toBe(
    [
      'Before.\n\n<!-- a.json, table 2 -->\n\n| way | CPU µs (range) |\n| --- | -------------: |',
      '| TCP |           2 \\* |\n\nBetween.\n\n<!-- a.json, provenance -->\n\n- Made.\n',
      '<!-- a.json, conclusions -->\n\n- It costs 2 µs.\n- \\* Not sure.\n\n- Stays.\n',
      '<!-- a.json, table 1 -->\n\n| way | CPU µs (range) |\n| --- | -------------: |',
      '| TCP |              1 |\n\nAfter, | with a bar.\n\n| another | table |\n',
    ].join('\n'),
  )
  expect(await fillMarks(filled, async () => result)).toBe(filled)
  const last = await fillMarks('<!-- a.json, conclusions -->\n', async () => result)
  expect(last).toMatch(/ -->\n\n- It costs 2 µs\.\n- \\\* Not sure\.\n$/)
})

test('what is not there is a problem, and the document stays as it is', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'onetrip-document-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'document.md')
  await expect(fillDocument(path)).rejects.toThrow(`${path} cannot be read`)
  await writeFile(path, 'No mark.')
  await expect(fillDocument(path)).rejects.toThrow(`${path} stays as it is. It has no line such as`)
  const text = '<!-- a.json, table 3 -->\n'
  await writeFile(path, text)
  await expect(fillDocument(path)).rejects.toThrow('a.json cannot be read')
  for (const other of [null, {}, { ...result, tables: undefined }]) {
    await writeFile(join(folder, 'a.json'), JSON.stringify(other))
    await expect(fillDocument(path)).rejects.toThrow('a.json is no result of an experiment')
  }
  await writeFile(join(folder, 'a.json'), JSON.stringify(result))
  await expect(fillDocument(path)).rejects.toThrow('has 2 tables, and not number 3.')
  expect(await readFile(path, 'utf8')).toBe(text)
})

test('docs/redis-experiments.md has the figures of its old files', async () => {
  const name = 'redis-experiments.md'
  const text = (await readFile(join(docs, name), 'utf8')).replaceAll('<!-- redis', '<!--- redis')
  const masked = text.replaceAll('<!-- ', '<!== ').replaceAll('<!--- redis', '<!-- redis')
  expect(masked).toBe(await fillMarks(masked, (file) => readExperiment(join(docs, file))))
})
