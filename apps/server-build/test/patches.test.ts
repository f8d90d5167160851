import { execFileSync } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeFlagsOf, type ServerBuild, serverBuilds } from '../src/builds.ts'
import { patchesDirectory, patchesOf } from '../src/patches.ts'
import { tinyRedis } from './tiny-redis.ts'

const directory = patchesDirectory({})
const patches = (await readdir(directory)).filter((name) => name.endsWith('.patch'))

test('every patch is in a series, and that of stock is the beginning of patched', async () => {
  const namesOf = async (build: ServerBuild) =>
    (await patchesOf(build, directory)).map(({ name }) => name)
  const series = await Promise.all(serverBuilds.map(namesOf))
  expect([...new Set(series.flat())].sort()).toEqual(patches.sort())
  const stock = await namesOf('stock')
  expect((await namesOf('patched')).slice(0, stock.length)).toEqual(stock)
})

test('a build up to 0006 includes 0009, which 0006 needs', async () => {
  const names = (await patchesOf('patched@0006', directory)).map(({ name }) => name)
  expect(names).toContain('0009-compare-descriptors-with-the-allocated-slots.patch')
})

test.each(patches)('%s begins with What, Why, Source and See', async (name) => {
  const text = await readFile(join(directory, name), 'utf8')
  const header = text.slice(0, text.indexOf('\n--- '))
  const fields = [...header.matchAll(/^(\w+): \S/gm)].map(([, field]) => field)
  expect(fields).toEqual(['What', 'Why', 'Source', 'See'])
})

test('patches apply inside another git repository', async () => {
  const tiny = await tinyRedis()
  execFileSync('git', ['init', '--quiet', tiny.directory])
  await tiny.run(['build', 'patched', ...tiny.fromArchive])
  expect((await tiny.run(['run', 'patched'])).stdout).toContain('kind: patched\n')
})

test('all builds of a server have the same flags, without link-time optimization', () => {
  const [flags, ...others] = serverBuilds.map((build) => makeFlagsOf(build, {}))
  for (const other of others) expect(other).toEqual(flags)
  // With exactly -O3, upstream's Makefile adds link-time optimization.
  expect(flags).toContain('OPTIMIZATION=-O3 -fno-omit-frame-pointer')
})
