import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'

/** Compiles a file in `c/` to a shared library for the current test. Returns its path. */
export async function sharedLibrary(source: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'onetrip-library-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const path = join(directory, `${basename(source, '.c')}.so`)
  const flags = ['-std=gnu11', '-Wall', '-Wextra', '-Werror', '-shared', '-fPIC']
  const file = fileURLToPath(new URL(`c/${source}`, import.meta.url))
  await promisify(execFile)(process.env.CC || 'cc', [...flags, '-o', path, file, '-ldl'])
  return path
}
