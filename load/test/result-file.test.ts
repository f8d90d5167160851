import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { resultFile } from '../src/http/result-file.ts'
import { filesIn, temporaryFolder } from './support/places.ts'

test('a file appears only when it is complete', async () => {
  const folder = await temporaryFolder()
  const file = await resultFile(join(folder, 'result.json'))
  expect(await filesIn(folder)).toEqual([])
  await file.save('{}\n')
  expect(await filesIn(folder)).toEqual(['result.json'])
  expect(await readFile(file.path, 'utf8')).toBe('{}\n')
})

test('a path that cannot be written is refused at once, by name', async () => {
  const folder = await temporaryFolder()
  await expect(resultFile(folder)).rejects.toThrow(`--json ${folder} cannot be written`)
  await expect(resultFile(join(folder, 'no', 'x.json'))).rejects.toThrow(/no folder .*no/)
  await expect(resultFile('/dev/null/x.json')).rejects.toThrow('/dev/null is no folder')
})
