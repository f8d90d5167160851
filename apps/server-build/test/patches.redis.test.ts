import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { describe, expect, test } from 'vitest'
import { prepareTree } from '../src/build.ts'
import { homeOf } from '../src/home.ts'
import type { Job } from '../src/job.ts'
import { patchesDirectory, patchesOf } from '../src/patches.ts'
import { createProgress } from '../src/progress.ts'
import { currentSource } from '../src/sources/source.ts'

const job: Job = {
  home: homeOf(process.env),
  env: process.env,
  progress: createProgress(),
  signal: new AbortController().signal,
}

const source = await currentSource(job.home)

describe.each(['with', 'without'] as const)("%s Debian's patches", (which) => {
  // Those of stock are the first ones of patched.
  test.each(['patched', 'baseline'] as const)('the patches of %s apply', async (build) => {
    if (!source) throw new Error('there is no source')
    const { debian, ...bare } = source
    const patches = await patchesOf(build, patchesDirectory({}))
    const tree = join(await temporaryFolder(), 'redis')
    const { redisVersion } = await prepareTree(job, which === 'with' ? source : bare, patches, tree)
    expect(redisVersion).toMatch(/^8\./)
  })
})
