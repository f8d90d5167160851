import { execFile } from 'node:child_process'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'

// apps/api/faults/backup.fault.ts restores backups of a real Redis.

const run = promisify(execFile)
const script = fileURLToPath(new URL('../container/backup.sh', import.meta.url))

/**
 * Creates a data directory like that of Redis.
 *
 * @param fakes shell scripts that replace programs, by name.
 * @returns its path, and a function that lists the files of a backup of it.
 */
async function dataDirectory(fakes: Record<string, string> = {}, manifest?: string) {
  const folder = await temporaryFolder()
  const data = join(folder, 'data')
  const log = join(data, 'appendonlydir')
  await mkdir(log, { recursive: true })
  const base = 'appendonly.aof.1.base.rdb'
  const increment = 'appendonly.aof.1.incr.aof'
  const old = 'appendonly.aof.0.incr.aof'
  for (const name of [base, increment]) await writeFile(join(log, name), name)
  const lines = [`${base} seq 1 type b`, `${old} seq 0 type h`, `${increment} seq 1 type i`]
  await writeFile(
    join(log, 'appendonly.aof.manifest'),
    manifest ?? lines.map((line) => `file ${line}\n`).join(''),
  )
  const bin = join(folder, 'bin')
  await mkdir(bin)
  for (const [name, text] of Object.entries(fakes)) {
    await writeFile(join(bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  }
  const backup = join(folder, 'backup.tar')
  const backUp = async () => {
    await run('sh', ['-c', 'exec sh "$0" "$1" >"$2"', script, data, backup], {
      env: { ...process.env, PATH: `${bin}:${process.env.PATH}` },
    })
    const { stdout } = await run('tar', ['-tf', backup])
    return stdout.trim().split('\n').sort()
  }
  return { data, backUp }
}

test('a backup contains the manifest and its files, except those to be removed', async () => {
  const { data, backUp } = await dataDirectory()
  expect(await backUp()).toEqual([
    'appendonlydir/',
    'appendonlydir/appendonly.aof.1.base.rdb',
    'appendonlydir/appendonly.aof.1.incr.aof',
    'appendonlydir/appendonly.aof.manifest',
  ])
  expect(await readdir(data)).toEqual(['appendonlydir'])
})

const failing: [string, Record<string, string>][] = [
  ['cp', { cp: 'echo "No space left on device" >&2; exit 1' }],
  ['GNU tar', { tar: 'exit 2' }],
  ['another tar', { tar: 'if [ "$1" = --version ]; then echo bsdtar; else exit 1; fi' }],
]
test.each(failing)('if %s fails, the backup fails and leaves no files', async (_, fakes) => {
  const { data, backUp } = await dataDirectory(fakes)
  await expect(backUp()).rejects.toMatchObject({ code: 1 })
  expect(await readdir(data)).toEqual(['appendonlydir'])
})

test('GNU tar may report that a file grew', async () => {
  const tar =
    'if [ "$1" = --version ]; then echo "tar (GNU tar)"; else command -p tar "$@"; exit 1; fi'
  const { backUp } = await dataDirectory({ tar })
  expect(await backUp()).toContain('appendonlydir/appendonly.aof.manifest')
})

test('an empty manifest is rejected', async () => {
  const { backUp } = await dataDirectory({}, '')
  await expect(backUp()).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('appendonly.aof.manifest lists no files'),
  })
})
