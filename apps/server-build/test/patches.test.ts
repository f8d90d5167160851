import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeFlagsOf, type ServerBuild, serverBuilds } from '../src/builds.ts'
import { patchesDirectory, patchesOf } from '../src/patches.ts'

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

test('the numbers of the patches have no holes, and each series is in their order', async () => {
  const numbers = patches.map((name) => Number(name.split('-', 1)[0])).sort((a, b) => a - b)
  expect(numbers).toEqual(patches.map((_, index) => index + 1))
  for (const build of serverBuilds) {
    const names = (await patchesOf(build, directory)).map(({ name }) => name)
    expect(names).toEqual(names.toSorted())
  }
})

test.each(patches)('%s begins with What, Why, Source and See', async (name) => {
  const text = await readFile(join(directory, name), 'utf8')
  const header = text.slice(0, text.indexOf('\n--- '))
  const fields = [...header.matchAll(/^(\w+): \S/gm)].map(([, field]) => field)
  expect(fields).toEqual(['What', 'Why', 'Source', 'See'])
})

test('all builds of a server have the same flags, without link-time optimization', () => {
  const [flags, ...others] = serverBuilds.map((build) => makeFlagsOf(build, {}))
  for (const other of others) expect(other).toEqual(flags)
  // With exactly -O3, upstream's Makefile adds link-time optimization.
  expect(flags).toContain('OPTIMIZATION=-O3 -fno-omit-frame-pointer')
})
