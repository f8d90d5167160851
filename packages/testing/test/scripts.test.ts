import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { scripts } from '../src/scripts.ts'

test('each script of the store is written a second time', () => {
  const cwd = fileURLToPath(new URL('../..', import.meta.url))
  const names = globSync('{session-store,express-session}/src/**/*.ts', { cwd }).flatMap((file) => {
    const text = readFileSync(`${cwd}/${file}`, 'utf8')
    return Array.from(text.matchAll(/^(?:(?:export )?const \w+ = `)?-- (.+)/gm), ([, name]) => name)
  })
  expect(names.toSorted()).toEqual(Object.keys(scripts).toSorted())
})
