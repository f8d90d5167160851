import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import {
  earlierRuns,
  type ResultRecord,
  type RunRecord,
  recordSaver,
} from '../../src/upstream/record.ts'
import { emptyRecord, keys } from './fixture.ts'

function run(file: string, role: RunRecord['role'], key = keys[role]): RunRecord {
  const at = { startedAt: '', seconds: 1, end: 'finished' as const, tests: [] }
  return { file, ioThreads: 1, role, attempt: 0, key, ...at }
}

async function resultFile(): Promise<{ directory: string; path: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'onetrip-record-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return { directory, path: join(directory, 'result.json') }
}

test('concurrent saves write all runs and leave no temporary file', async () => {
  const { directory, path } = await resultFile()
  const record = emptyRecord()
  const save = recordSaver(path, record)
  const files = Array.from({ length: 20 }, (_, index) => `unit/${index}`)
  await Promise.all(
    files.map((file) => {
      record.runs.push(run(file, 'reference'))
      return save()
    }),
  )
  const written: ResultRecord = JSON.parse(await readFile(path, 'utf8'))
  expect(written.runs.map(({ file }) => file)).toEqual(files)
  expect(await readdir(directory)).toEqual(['result.json'])
})

test('keeps only runs of the current builds', async () => {
  const { path } = await resultFile()
  const record = emptyRecord()
  record.runs.push(run('a', 'reference'), run('a', 'candidate', 'older'), run('b', 'candidate'))
  await recordSaver(path, record)()
  const kept = await earlierRuns(path, record)
  expect(kept.map(({ file, role }) => `${file} ${role}`)).toEqual(['a reference', 'b candidate'])
})

test('a missing result file has no runs; a file that is not a result is rejected', async () => {
  const { path } = await resultFile()
  expect(await earlierRuns(path, emptyRecord())).toEqual([])
  for (const text of ['not JSON', '{"format": 2}']) {
    await writeFile(path, text)
    await expect(earlierRuns(path, emptyRecord())).rejects.toThrow('is not a result of these tests')
  }
})
