import { execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { installPacked, packedForThisTest } from '@onetrip/stack/testing/packed.ts'
import { expect, onTestFinished, test } from 'vitest'

const bin = join(import.meta.dirname, '../node_modules/.bin')
const names = globSync('*/package.json', { cwd: import.meta.dirname }).map(dirname)

/** Fails, with the output, if the program finds something. */
function check(program: string, ...args: string[]): void {
  execFileSync(process.execPath, [join(bin, program), ...args], { encoding: 'utf8' })
}

test.each(names)(
  'the packed package %s has correct entries and links',
  { timeout: 600_000 },
  (name) => {
    const tarball = packedForThisTest(name)
    check('publint', '--strict', tarball)
    check('attw', tarball, '--profile', 'esm-only', '--quiet')

    const project = mkdtempSync(join(tmpdir(), 'onetrip-project-'))
    onTestFinished(() => rmSync(project, { recursive: true, force: true }))
    const installed = installPacked(tarball, project, name)
    const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
    expect(manifest).not.toHaveProperty('private')
    const files = globSync('**', { cwd: installed })
    expect(files).toEqual(expect.arrayContaining(['README.md', 'LICENSE']))
    const sources = files.filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
    expect(sources.filter((file) => !file.startsWith('examples/'))).toEqual([])
    const pages = files.filter((file) => file.endsWith('.md'))
    const targets = pages.flatMap((page) =>
      [...readFileSync(join(installed, page), 'utf8').matchAll(/\]\((?!#|\w+:)([^)#]+)/g)].map(
        ([, target = '']) => join(installed, dirname(page), target),
      ),
    )
    expect(targets.filter((path) => !existsSync(path))).toEqual([])
  },
)
