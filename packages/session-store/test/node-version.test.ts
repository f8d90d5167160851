import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import manifest from '../package.json' with { type: 'json' }

const folder = fileURLToPath(new URL('..', import.meta.url))

test.each(Object.keys(manifest.exports))(
  '%s: a Node that is too old is refused when the module is loaded',
  (entry) => {
    const name = `@onetrip/session-store${entry.slice(1)}`
    const program = `
      delete Map.groupBy // as in Node 20
      await import('${name}').catch((error) => console.log(error.message))`
    const options = { cwd: folder, encoding: 'utf8' } as const
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ['--input-type=module', '-e', program],
      options,
    )
    const message = `@onetrip/session-store needs Node 22.12 or newer; this is ${process.version}\n`
    expect(stdout, stderr).toBe(message)
  },
)
