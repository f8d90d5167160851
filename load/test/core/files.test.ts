import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { filesIn, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { Command } from 'commander'
import { afterEach, expect, test, vi } from 'vitest'
import { http } from '../../src/experiments/http/http.ts'
import * as machine from '../../src/measure/machine.ts'
import { readResult } from '../../src/reporting/files.ts'
import { markdownOf } from '../../src/reporting/markdown.ts'
import { addOutputs, type OutputFlags, prepareOutputs } from '../../src/reporting/outputs.ts'
import { pageOf } from '../../src/reporting/page.ts'
import { partOf } from '../../src/reporting/part.ts'
import { httpSamples, resultOf } from '../support/result.ts'

vi.mock(import('../../src/measure/machine.ts'), { spy: true })
afterEach(() => {
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
})

const result = resultOf(http, httpSamples({ naive: [10_000 / 3], batch: [40_000] }))
const saved = { name: 'this run', experiment: http, result }

test('writes the requested file, with fractions of six digits', async () => {
  const folder = await temporaryFolder()
  const save = await prepareOutputs({ json: join(folder, 'a.json') })
  expect(await filesIn(folder)).toEqual([])
  await save(saved)
  expect(await filesIn(folder)).toEqual(['a.json'])
  const read = await readResult(join(folder, 'a.json'))
  expect(read.experiment).toBe(http)
  expect(read.result.samples[0]?.values).toMatchObject({ requestsPerSecond: 3_333.33 })
})

test('rejects a path that cannot be written, before the measurement', async () => {
  const folder = await temporaryFolder()
  const of = (json: string) => expect(prepareOutputs({ json })).rejects
  await of(folder).toThrow(`--json ${folder} cannot be written: it is a folder`)
  await of('/dev/null').toThrow('--json /dev/null cannot be written: it is a device or a pipe')
  await of(join(folder, 'no', 'x')).toThrow('ENOENT')
  await of('/dev/null/x.json').toThrow('ENOTDIR')
})

test('refuses to publish figures of code that is not committed', async () => {
  const gitState = vi.spyOn(machine, 'gitState')
  const published = join(machine.published, 'http.json')
  gitState.mockResolvedValue({ commit: 'f'.repeat(40), dirty: true })
  await expect(prepareOutputs({ json: published })).rejects.toThrow('Commit the changes')
  await prepareOutputs({ json: join(await temporaryFolder(), 'http.json') })
  gitState.mockResolvedValue(null)
  await expect(prepareOutputs({ json: published })).rejects.toThrow('not committed')
})

test('the latest report shows the last run, and --no-report does not update it', async () => {
  const state = await temporaryFolder()
  vi.stubEnv('ONETRIP_STATE', state)
  vi.stubEnv('ONETRIP_REPORT', '')
  const flags = (args: string[]) =>
    addOutputs(new Command()).parse(args, { from: 'user' }).opts<OutputFlags>()
  await (await prepareOutputs(flags(['--no-report'])))(saved)
  expect(await filesIn(state)).toEqual([])
  await (await prepareOutputs(flags([])))(saved)
  expect(await filesIn(state)).toEqual(['latest.html'])
  const page = await readFile(join(state, 'report', 'latest.html'), 'utf8')
  expect(page).toContain('<td class="text">naive</td><td>3,333</td>')
})

test('an error in the latest report does not prevent other files', async () => {
  const folder = await temporaryFolder()
  await writeFile(join(folder, 'state'), '')
  vi.stubEnv('ONETRIP_STATE', join(folder, 'state'))
  vi.stubEnv('ONETRIP_REPORT', '')
  await (await prepareOutputs({ report: true, json: join(folder, 'a.json') }))(saved)
  expect((await filesIn(folder)).toSorted()).toEqual(['a.json', 'state'])
})

const of = (change: object) => JSON.stringify({ ...result, ...change })

test.each([
  ['Unexpected end of JSON', ''],
  ['not a result of npm run load', 'null'],
  ['not a result of npm run load', '{"format":"onetrip-load-http/3"}'],
  ['unknown experiment "toString"', of({ experiment: 'toString' })],
  ['the result has no samples', of({ samples: [] })],
])('rejects an invalid file: %s', async (message, content) => {
  const path = join(await temporaryFolder(), 'x.json')
  await writeFile(path, content)
  await expect(readResult(path)).rejects.toThrow(`${path} cannot be read: ${message}`)
})

test('HTML and Markdown escape all strings of a result', () => {
  const machine = { ...result.machine, cpu: 'a|b\n# <img src=x> [c](d) `e` _f_' }
  const command = 'npm run load -- `x` | <b>*a*</b>'
  const bad = { experiment: http, result: { ...result, command, machine } }
  expect(pageOf(bad)).toContain('&#60;b&#62;')
  expect(pageOf(bad)).not.toMatch(/<(b|script|link|img)\b/)
  const text = markdownOf(partOf(bad))
  expect(text).toContain(String.raw`a\|b \# \<img src=x\> \[c\](d) \`e\` \_f\_, 2 cores`)
  expect(text).toContain("`npm run load -- 'x' | <b>*a*</b>`")
})
