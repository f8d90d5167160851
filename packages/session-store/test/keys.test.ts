import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../..', import.meta.url))

const folders = [
  'packages/session-store/src',
  'packages/cluster/src',
  'apps/api/src',
  'apps/demo/src',
  'apps/stack/src',
  'load/src',
]

const sources = folders.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name)),
)

test('only keys.ts contains names of keys', () => {
  const withKeyNames = sources.filter((file) =>
    /['"`](login|recent|viewed|sessions|janitor|limit):/.test(
      readFileSync(join(root, file), 'utf8'),
    ),
  )
  expect(withKeyNames).toEqual(['packages/session-store/src/keys.ts'])
})
