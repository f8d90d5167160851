import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { filesIn, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { Command } from 'commander'
import { afterEach, expect, test, vi } from 'vitest'
import { outputFile } from '../../src/report/output-file.ts'
import { addOutputs, type OutputFlags, prepareOutputs } from '../../src/report/outputs.ts'
import { httpResult } from '../support/http-results.ts'

afterEach(() => vi.unstubAllEnvs())

const result = { ...httpResult({ naive: [10_000 / 3] }), whole: 12_345_678 }

test('a file appears only when it is complete', async () => {
  const folder = await temporaryFolder()
  const file = await outputFile('--json', join(folder, 'result.json'))
  expect(await filesIn(folder)).toEqual([])
  await file.save('{}\n')
  expect(await filesIn(folder)).toEqual(['result.json'])
  expect(await readFile(file.path, 'utf8')).toBe('{}\n')
})

test('a path that cannot be written is refused at once, by name', async () => {
  const folder = await temporaryFolder()
  await expect(outputFile('--json', folder)).rejects.toThrow(`--json ${folder} cannot be written`)
  await expect(outputFile('--json', join(folder, 'no', 'x'))).rejects.toThrow(/no folder .*no/)
  await expect(outputFile('--html', '/dev/null/x.html')).rejects.toThrow('/dev/null is no folder')
  for (const option of ['json', 'html', 'markdown']) {
    const flags = { [option]: '/nowhere/file' }
    await expect(prepareOutputs(flags)).rejects.toThrow(`--${option} /nowhere/file cannot be`)
  }
})

test('every file that was asked for is written, figures with six digits', async () => {
  const folder = await temporaryFolder()
  const json = join(folder, 'a.json')
  const outputs = await prepareOutputs({
    json,
    html: join(folder, 'a.html'),
    markdown: join(folder, 'a.md'),
  })
  expect(await filesIn(folder)).toEqual([])
  await outputs.save(result)
  expect((await filesIn(folder)).toSorted()).toEqual(['a.html', 'a.json', 'a.md'])
  const saved = JSON.parse(await readFile(json, 'utf8'))
  expect(saved).toMatchObject({ format: 'onetrip-load-http/3', whole: 12_345_678 })
  expect(saved.samples[0].requestsPerSecond).toBe(3_333.33)
})

test('the latest report is renewed by a command, but not by --no-report', async () => {
  const state = await temporaryFolder()
  vi.stubEnv('ONETRIP_STATE', state)
  vi.stubEnv('ONETRIP_REPORT', '')
  const flags = (args: string[]) =>
    addOutputs(new Command()).parse(args, { from: 'user' }).opts<OutputFlags>()
  await (await prepareOutputs(flags(['--no-report']))).save(result)
  expect(await filesIn(state)).toEqual([])
  await (await prepareOutputs(flags([]))).save(result)
  expect(await filesIn(state)).toEqual(['latest.html'])
})

test('a place where no latest report can be written stops nothing', async () => {
  const folder = await temporaryFolder()
  const json = join(folder, 'a.json')
  await writeFile(join(folder, 'state'), '')
  vi.stubEnv('ONETRIP_STATE', join(folder, 'state'))
  vi.stubEnv('ONETRIP_REPORT', '')
  await (await prepareOutputs({ report: true, json })).save(result)
  expect((await filesIn(folder)).toSorted()).toEqual(['a.json', 'state'])
})
