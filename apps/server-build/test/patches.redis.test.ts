import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { unpackTarGz, unpackTarXz } from '../src/archive.ts'
import { serverBuilds } from '../src/builds.ts'
import { homeOf } from '../src/home.ts'
import {
  apartFromOurRepository,
  applyPatch,
  debianPatches,
  patchesDirectory,
  patchesOf,
} from '../src/patches.ts'
import { storedSources } from '../src/sources/source.ts'

// Every source in the cache, which has at least the one that the build under test was made of. To
// test with another version, fetch it first: `npm run redis -- build --suite trixie` gets 8.0.2.
const sources = await storedSources(homeOf(process.env))

describe.each(sources)('the patches apply to $from', (source) => {
  const bases = source.debian ? (['with', 'without'] as const) : (['without'] as const)
  test.each(bases)("%s Debian's patches", async (base) => {
    const directory = await mkdtemp(join(tmpdir(), 'onetrip-patches-'))
    onTestFinished(() => rm(directory, { recursive: true, force: true }))
    const failures: string[] = []
    for (const build of serverBuilds) {
      const tree = join(directory, build)
      await unpackTarGz(join(source.directory, source.archive.file), tree)
      const patches = await patchesOf(build, patchesDirectory({}))
      if (base === 'with' && source.debian) {
        const debian = join(directory, `${build}-debian`)
        await unpackTarXz(join(source.directory, source.debian.file), debian)
        patches.unshift(...(await debianPatches(join(debian, 'debian'))))
      }
      for (const patch of patches) {
        await applyPatch(tree, patch, { env: process.env }).catch((error: Error) => {
          failures.push(`${build}: ${error.message}`)
          // The next patches are held against as much of this one as applies.
          spawnSync('git', ['apply', '--reject', patch.path], {
            cwd: tree,
            env: apartFromOurRepository(tree, process.env),
          })
        })
      }
    }
    expect(failures.join('\n\n')).toBe('')
  })
})

test('there is a source to try the patches on', () => {
  expect(sources).not.toEqual([])
})
