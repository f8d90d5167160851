import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { makeFlagsOf, serverBuilds } from '../src/builds.ts'
import { makeActivity, withDependencies } from '../src/compile.ts'

test('the progress counts files and shows configuring and linking', () => {
  const activity = makeActivity()
  const after = (output: string) => {
    activity.read(output)
    return activity.describe()
  }
  expect(after('MAKE jemalloc\nchecking for gcc... gcc\nchecking')).toBe(
    '0 files, configuring jemalloc',
  )
  expect(
    after(' for nm... nm\ncc -std=c99 -O3 -c net.c\ngcc -O3 -c -o src/arena.o src/arena.c\n'),
  ).toBe('2 files')
  // Upstream's output has colours.
  expect(after('    \x1b[34mCC\x1b[0m \x1b[33madlist.o\x1b[0m\n    \x1b[34mC')).toBe('3 files')
  expect(after('C\x1b[0m \x1b[33mae.o\x1b[0m\n')).toBe('4 files')
  expect(after('    \x1b[34;1mLINK\x1b[0m \x1b[37;1mredis-server\x1b[0m\n')).toBe(
    '4 files, linking redis-server',
  )
})

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
