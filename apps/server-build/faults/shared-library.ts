import { execFile } from 'node:child_process'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'

/** Compiles a file in `c/` to a shared library for the current test. Returns its path. */
export async function sharedLibrary(source: string): Promise<string> {
  const path = join(await temporaryFolder(), `${basename(source, '.c')}.so`)
  const flags = ['-std=gnu11', '-Wall', '-Wextra', '-Werror', '-shared', '-fPIC']
  const file = fileURLToPath(new URL(`c/${source}`, import.meta.url))
  await promisify(execFile)(process.env.CC || 'cc', [...flags, '-o', path, file, '-ldl'])
  return path
}
