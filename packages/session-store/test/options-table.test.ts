import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { storeDefaults } from '../src/options.ts'
import { janitorDefaults } from '../src/retention/options.ts'

const text = readFileSync(new URL('../REFERENCE.md', import.meta.url), 'utf8')

/** Option → default, of the table with this heading in its first column. */
function tableOf(heading: string): Record<string, string> {
  const [, table = ''] = text.split(`| ${heading}`)
  const [rows = ''] = table.split('\n\n')
  const cells = rows.matchAll(/^\| `(\w+)` +\| (.*?) +\|/gm)
  return Object.fromEntries([...cells].map(([, name, value]) => [name, value]))
}

function shown(name: string, value: unknown): string {
  if (name === 'keys') return '`articleKeys`'
  if (value === undefined) return 'none'
  if (typeof value === 'number') return value.toLocaleString('en')
  return `\`${typeof value === 'string' ? `'${value}'` : JSON.stringify(value)}\``
}

const shownDefaults = (defaults: object) =>
  Object.fromEntries(Object.entries(defaults).map(([name, value]) => [name, shown(name, value)]))

test('REFERENCE.md has all options of the store and of a janitor, with their defaults', () => {
  expect(tableOf('option of the store')).toEqual(shownDefaults(storeDefaults))
  expect(Object.keys(storeDefaults).length).toBeLessThanOrEqual(12)
  const options = { ...shownDefaults(janitorDefaults), sweepKeys: "the store's" }
  expect(tableOf('option of a janitor')).toEqual(options)
  expect(Object.keys(options).length).toBeLessThanOrEqual(8)
})
