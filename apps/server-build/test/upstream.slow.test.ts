import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { processesOf, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'

const program = fileURLToPath(new URL('../faults/upstream.ts', import.meta.url))

const hasTcl = spawnSync('tclsh8.6', { input: '' }).status === 0

test.runIf(hasTcl)('runs a file of upstream and leaves nothing behind', async () => {
  const TMPDIR = await temporaryFolder()
  const args = [program, '--io-threads', '2', '--single', 'unit/quit']
  const child = spawn(process.execPath, args, { env: { ...process.env, TMPDIR } })
  const [output, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ])
  expect(errors).toContain('[1/1 done]: unit/quit')
  expect({ code, output }, errors).toEqual({ code: 0, output: '0 failures, 0 of them new\n' })
  expect(await processesOf(TMPDIR)).toEqual([])
  expect(await readdir(TMPDIR)).toEqual([])
})
