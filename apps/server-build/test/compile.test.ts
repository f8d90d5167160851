import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { makeFlagsOf, serverBuilds } from '../src/builds.ts'
import { withDependencies } from '../src/compile.ts'

test('a dependency of newer versions is built if it exists', async () => {
  const tree = await temporaryFolder()
  const flags = ['BUILD_TLS=no', 'DEPENDENCY_TARGETS=hiredis lua']
  expect(withDependencies(flags, tree)).toEqual(flags)
  await mkdir(join(tree, 'deps', 'xxhash'), { recursive: true })
  expect(withDependencies(flags, tree)).toEqual([
    'BUILD_TLS=no',
    'DEPENDENCY_TARGETS=hiredis lua xxhash',
  ])
})

test('all builds of a server have the same flags, without link-time optimization', () => {
  const [flags, ...others] = serverBuilds.map((build) => makeFlagsOf(build, {}))
  for (const other of others) expect(other).toEqual(flags)
  // With exactly -O3, upstream's Makefile adds link-time optimization.
  expect(flags).toContain('OPTIMIZATION=-O3 -fno-omit-frame-pointer')
})
