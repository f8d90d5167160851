import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>
}

const matches = (pattern: RegExp) => [
  ...new Set([...readme.matchAll(pattern)].map(([, match]) => match ?? '')),
]

test('every npm script that the README names exists', () => {
  const named = matches(/npm run ([\w:.-]+)/g)
  expect(named).not.toEqual([])
  expect(named.filter((name) => !(name in scripts))).toEqual([])
})

test('every path that the README names exists', () => {
  const named = [
    ...matches(/`((?:apps|packages|load|docs)\/[\w./-]*)`/g),
    ...matches(/\]\((?!https?:)([^)#]+)/g),
  ]
  expect(named).not.toEqual([])
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([])
})
