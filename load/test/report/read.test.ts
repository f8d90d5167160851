import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import { temporaryFolder } from '@onetrip/stack/testing/places.ts'
import { expect, test } from 'vitest'
import { partsOf, readDocument } from '../../src/report/read.ts'
import { renderMarkdown } from '../../src/report/render.ts'
import { httpResult } from '../support/http-results.ts'
import { experimentResult, latencyResult } from './support/results.ts'

const http = httpResult({ naive: [3_000, 3_100], batch: [40_000, 41_000] })

test.each([
  [null, 'x.json is no result of npm run load: it has no "format" (onetrip-load-http/2, '],
  [[1, 2], 'it has no "format"'],
  [{ format: 7 }, 'it has no "format"'],
  [{ format: 'toString' }, 'is in the format "toString", which is none of onetrip-load-http/2, '],
  [{ format: 'onetrip-load-http/3' }, 'x.json is no whole result: machine is missing'],
  [{ ...latencyResult(), summaries: undefined }, 'x.json says that it is onetrip-load-latency/1,'],
  [{ format: 'onetrip-load-all/1', parts: [] }, 'x.json has no parts'],
  [{ format: 'onetrip-load-all/1', parts: [http, {}] }, 'x.json, part 2 is no result'],
])('document %# is refused', (document, message) => {
  expect(() => partsOf({ name: 'x.json', document })).toThrow(message)
})

test('a document of several results gives a part for each', () => {
  const parts = [http, latencyResult(), experimentResult()]
  const document = { format: 'onetrip-load-all/1', parts }
  const names = partsOf({ name: 'all.json', document }).map(({ name }) => name)
  expect(names).toEqual(['http', 'latency', 'info'])
})

test('a file that is no JSON, or is not there, is refused by its path', async () => {
  const path = join(await temporaryFolder(), 'half.json')
  await writeFile(path, '{"format": "onetrip')
  await expect(readDocument(path)).rejects.toThrow(`${path} cannot be read: `)
  await expect(readDocument('/nowhere.json')).rejects.toThrow(
    '/nowhere.json cannot be read: ENOENT',
  )
  await expect(readDocument('/tmp')).rejects.toThrow('/tmp cannot be read: it is no file')
})

test('files of experiments without tables are shown', async () => {
  const read = async (name: string) => partsOf(await readDocument(join(repository, 'docs', name)))
  const [store] = await read('store-local-2026-11-21.json')
  const captions = store?.sections.flatMap(({ tables = [] }) =>
    tables.map(({ caption }) => caption),
  )
  expect(captions?.join('\n')).toContain('unix: Unix socket (PING: 0.015 ms)')
  expect(captions?.join('\n')).toContain("ours and the documents' (table 4)")
  const [retention] = await read('store-retention-2026-11-21.json')
  expect(retention?.samples.map(({ rows }) => rows.length)).toEqual([4])
})

test('Markdown has the sentences and tables, and nothing of the data is taken for Markdown', () => {
  const evil = httpResult({ naive: [3_000], batch: [40_000] })
  const command = 'npm run load -- `x` | <b>*a*</b>'
  const machine = { ...evil.machine, cpu: 'a|b\n# <img src=x> [c](d) `e` _f_' }
  const text = renderMarkdown([{ name: 'x', document: { ...evil, command, machine } }])
  expect(text).toContain(
    '**batch answers 13.3 times as many requests a second as naive (one round).**',
  )
  expect(text).toMatch(/^\| naive +\| +3,000 \| +3\.00 \|/m)
  expect(text).toMatch(/^\| -+ \| -+: \|/m)
  expect(text).toContain(String.raw`a\|b \# \<img src=x\> \[c\](d) \`e\` \_f\_, 2 cores`)
  expect(text).toContain('`` npm run load -- `x` | <b>*a*</b> ``')
  const widths = text.split('\n').filter((line) => /^\| (variant|naive|batch|-+) /.test(line))
  expect(new Set(widths.slice(0, 4).map(({ length }) => length)).size).toBe(1)
})
