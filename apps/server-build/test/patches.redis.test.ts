import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { prepareTree } from '../src/build.ts'
import { serverBuilds } from '../src/builds.ts'
import { homeOf } from '../src/home.ts'
import type { Job } from '../src/job.ts'
import { patchesDirectory, patchesOf } from '../src/patches.ts'
import { createProgress } from '../src/progress.ts'
import { type StoredSource, storedSources } from '../src/sources/source.ts'

const job: Job = {
  home: homeOf(process.env),
  env: process.env,
  progress: createProgress({ CI: '1' }),
  signal: new AbortController().signal,
}

// Every source in the cache, including that of the tested build. To test another version, download it first
// (docs/moving-the-patches.md).
const sources = (await storedSources(job.home)).flatMap((source): StoredSource[] => {
  const { debian, ...bare } = source
  // 0005 needs a security fix (CVE-2025-48367) that 8.0.3 has and that Debian added to 8.0.2.
  const isComplete = source.redisVersion !== '8.0.2'
  return [
    ...(debian ? [source] : []),
    ...(isComplete ? [{ ...bare, from: `${source.from}, without Debian's patches` }] : []),
  ]
})

describe.each(sources)('$from', (source) => {
  test.each(serverBuilds)('the patches of %s apply', async (build) => {
    const aside = await mkdtemp(join(tmpdir(), 'onetrip-patches-'))
    onTestFinished(() => rm(aside, { recursive: true, force: true }))
    const patches = await patchesOf(build, patchesDirectory({}))
    await prepareTree(job, source, patches, aside, join(aside, 'redis'))
  })
})

test('the cache has a source', () => {
  expect(sources).not.toEqual([])
})
