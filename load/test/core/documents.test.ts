import { readFile, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import { filesIn, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { published } from '../../src/measure/machine.ts'
import { publishedRuns } from '../../src/publish/runs.ts'
import {
  drawnCharts,
  markedDocuments,
  publishedOverview,
  withFigures,
} from '../../src/reporting/document.ts'
import { readResults } from '../../src/reporting/files.ts'
import type { Sample } from '../../src/rounds/result.ts'
import { runLoad } from '../support/run.ts'

const documents = await Promise.all(
  (await markedDocuments()).map(async (path) => ({
    name: relative(repository, path),
    text: await readFile(path, 'utf8'),
  })),
)
// To update them: npm run load -- document
test.each(documents)('$name has the figures of load/results', async ({ text }) => {
  expect(text).toBe(await withFigures(text))
})

test('every published result is of the same commit, without changes, on one day and with one build', async () => {
  const results = await readResults(published)
  const only = (values: unknown[]) => expect([...new Set(values)]).toHaveLength(1)
  expect(results.filter(({ result }) => result.git?.dirty !== false)).toEqual([])
  only(results.map(({ result }) => result.git?.commit))
  only(results.flatMap(({ result }) => String(result.software.Redis).match(/\bpatched-\w+/g) ?? []))
  const planned = publishedRuns.map(({ name }) => `${name}.json`)
  expect(results.map(({ name }) => name).filter((name) => !planned.includes(name))).toEqual([])
  const times = results.map(({ result }) => Date.parse(result.date))
  expect(Math.max(...times) - Math.min(...times)).toBeLessThan(86_400_000)
})

test('load/results/README.md has all results, in at most 300 lines', async () => {
  // To update it: npm run load -- document
  const text = await readFile(join(published, 'README.md'), 'utf8')
  expect(text).toBe(await publishedOverview())
  expect(text.split('\n').length).toBeLessThanOrEqual(300)
})

// To update them: npm run load -- document
test.for(await drawnCharts())('$path has the figures of load/results', async ({ path, svg }) => {
  expect(await readFile(path, 'utf8')).toBe(svg)
})

test('what is planned and not measured yet says so, and is filled later', async () => {
  const text = '<!-- http.json, table 1 -->\n\n<!-- http.json, provenance -->\n'
  const before = await withFigures(text, await temporaryFolder())
  expect(before).toMatch(/\| to be measured .*\n\| --- \|[\s\S]*\n- to be measured/)
  expect(await withFigures(before)).toBe(await withFigures(text))
})

/** A folder with a small result over HTTP, `a.json`. */
async function folderOfResults(more: Partial<Sample> = {}): Promise<string> {
  const folder = await temporaryFolder()
  const result = JSON.parse(await readFile(join(published, 'http.json'), 'utf8'))
  const [first] = result.samples
  const samples = [{ ...first, ...more, values: { ...first.values, requestsPerSecond: 7 } }]
  await writeFile(join(folder, 'a.json'), JSON.stringify({ ...result, samples }))
  return folder
}

test('replaces tables and lists below marks, and keeps all other text', async () => {
  const folder = await folderOfResults()
  const text = [
    'Before.\n\n<!-- a.json, table 1 -->\n\n| old | table |\n| --- | ----: |\n| x | y |\n\nBetween.\n',
    '<!-- a.json, provenance -->\n\n- Old.\n- Older.\n\n- Stays.\n',
    '<!-- a.json, table 1 -->\n\n- A list\n  stays.\n\n<!-- a.json, table 1 -->\n\nAfter, | with a bar.\n',
  ].join('\n')
  const filled = await withFigures(text, folder)
  expect(filled).toMatch(
    /^- [-\d]+, \d\d:\d\d UTC: `npm run load -- .*`\. .*I\/O threads; other programs used [\d.]+ % of the CPU/m,
  )
  expect(filled).toMatch(/^\| naive +\| +7.00 \| +1 \|/m)
  const rest = filled.replaceAll(/^(\|.*|- 2026.*)\n/gm, '')
  expect(rest).toBe(
    [
      'Before.\n\n<!-- a.json, table 1 -->\n\n\nBetween.\n\n<!-- a.json, provenance -->\n\n\n- Stays.\n',
      '<!-- a.json, table 1 -->\n\n\n- A list\n  stays.\n\n<!-- a.json, table 1 -->\n\n\nAfter, | with a bar.\n',
    ].join('\n'),
  )
  expect(await withFigures(filled, folder)).toBe(filled)
})

test('selects rows and columns by name; marks a row where the text explains the mark', async () => {
  const folder = await folderOfResults({ doubts: ['generator'] })
  const table = '<!-- a.json, table 1: naive; × naive, errors -->\n'
  expect(await withFigures(table, folder)).toMatch(/^\| naive +\| +1 \| +0 +\|$/m)
  const filled = await withFigures(`${table}\n<!-- a.json, notes -->\n`, folder)
  expect(filled).toMatch(/^\| naive \\\* +\| +1 \| +0 +\|$/m)
  expect(filled).toMatch(/^- \\\* \S/m)
})

test.for([
  ['<!-- b.json, notes -->', 'b.json cannot be read: ENOENT'],
  ['<!-- a.json, table 99 -->', /a\.json has no table 99, only \d tables/],
  ['<!-- a.json, table 1: nobody; p99 ms -->', 'The table of a.json has no row nobody'],
  ['<!-- a.json, table 1: naive; p98 ms -->', 'The table of a.json has no column p98 ms'],
] as const)('rejects %s', async ([text, message]) => {
  await expect(withFigures(text, await folderOfResults())).rejects.toThrow(message)
})

test('npm run load -- document updates a file, or leaves it unchanged after an error', async () => {
  const state = await temporaryFolder()
  const document = async (text: string) => {
    const path = join(await temporaryFolder(), 'document.md')
    await writeFile(path, text)
    const program = await runLoad({ state, args: ['document', path], until: /./ })
    const { code } = await program.exited
    return { code, output: program.output.join('\n'), text: await readFile(path, 'utf8') }
  }
  const filled = await document('<!-- http.json, table 1 -->\n')
  expect(filled).toMatchObject({ code: 0, text: expect.stringMatching(/^\| naive /m) })
  expect(await document('No mark.')).toEqual({
    code: 1,
    text: 'No mark.',
    output: expect.stringContaining('was not changed'),
  })
  expect(await filesIn(state)).toEqual([])
})
