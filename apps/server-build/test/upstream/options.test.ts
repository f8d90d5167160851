import { expect, test } from 'vitest'
import { chosenFiles, type UpstreamOptions, upstreamOptions } from '../../src/upstream/options.ts'
import type { TestFile } from '../../src/upstream/suites.ts'

const files = ['unit/auth', 'unit/type/list', 'unit/type/set', 'integration/aof'].map(
  (name): TestFile => ({ suite: 'main', name }),
)

function chosen(...patterns: string[]): string[] {
  return chosenFiles(files, patterns).map(({ name }) => name)
}

test('patterns select files, in the order of the suite', () => {
  expect(chosenFiles(files, undefined)).toEqual(files)
  expect(chosen('unit/type/*', 'unit/auth')).toEqual([
    'unit/auth',
    'unit/type/list',
    'unit/type/set',
  ])
  expect(chosen('unit/*')).toEqual(['unit/auth'])
  expect(chosen('**')).toHaveLength(4)
})

test('a pattern without a match is rejected, with suggestions', () => {
  expect(() => chosen('unit/auth', 'list')).toThrow("no test file matches 'list'")
  expect(() => chosen('list')).toThrow('Did you mean unit/type/list?')
  expect(() => chosen('nothing')).toThrow('Names look like unit/auth')
})

function parsed(...args: string[]): UpstreamOptions {
  return upstreamOptions(4)
    .exitOverride()
    .configureOutput({ writeErr() {} })
    .parse(args, {
      from: 'user',
    })
    .opts()
}

test('parses defaults and lists', () => {
  expect(parsed()).toMatchObject({
    builds: ['stock', 'patched'],
    suites: ['main', 'patches'],
    ioThreads: [1, 2],
    clients: 4,
    timeout: 1_200,
    reruns: 5,
  })
  expect(
    parsed('--builds', 'stock,stock', '--io-threads', '4, 1,4', '--files', 'tests/unit/auth.tcl'),
  ).toMatchObject({ builds: ['stock', 'stock'], ioThreads: [4, 1], files: ['unit/auth'] })
  expect(parsed('--builds', 'patched@0004,patched@0005').builds).toEqual([
    'patched@0004',
    'patched@0005',
  ])
  expect(parsed('--sanitizer', 'address').sanitizer).toBe('address')
  expect(parsed('--suites', 'cluster,main,cluster').suites).toEqual(['cluster', 'main'])
})

test.each([
  [['--builds', 'stock'], 'two builds'],
  [['--builds', 'stock,tools'], 'two builds'],
  [['--builds', 'stock,fastest'], 'two builds of patched, stock, baseline'],
  [['--builds', 'stock,fastest,patched'], 'two builds'],
  [['--builds', 'stock,patched@5'], 'two builds'],
  [['--sanitizer', 'valgrind'], 'Allowed choices are address, thread'],
  [['--suites', 'unit'], "'unit' is not one of main, patches, modules, cluster, sentinel"],
  [['--io-threads', '0'], 'a whole number from 1 to 128'],
  [['--files', 'a,,b'], 'names, separated by commas'],
])('refuses %s', (args, message) => {
  expect(() => parsed(...args)).toThrow(message)
})
