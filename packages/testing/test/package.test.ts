import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installPacked, packedForThisTest } from '@onetrip/stack/testing/packed.ts'
import { expect, onTestFinished, test } from 'vitest'

const root = fileURLToPath(new URL('../../..', import.meta.url))

test('the example works in an empty project', { timeout: 600_000 }, () => {
  const project = mkdtempSync(join(tmpdir(), 'onetrip-testing-'))
  onTestFinished(() => rmSync(project, { recursive: true, force: true }))
  for (const name of ['session-store', 'testing']) {
    installPacked(packedForThisTest(name), project, name)
  }
  const needed = ['ioredis', 'fastify', 'fastify-plugin', 'cookie', 'cluster-key-slot']
  for (const name of [...needed, '@types/node', 'typescript']) {
    const target = join(project, 'node_modules', name)
    mkdirSync(dirname(target), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), target)
  }
  copyFileSync(join(root, 'packages/testing/examples/testing.ts'), join(project, 'example.mts'))
  const run = (...args: string[]) =>
    execFileSync(process.execPath, args, { cwd: project, encoding: 'utf8' })
  expect(run('example.mts')).toContain('pass 2')
  const options = ['--strict', '--noEmit', '--types', 'node', '--module', 'nodenext']
  run('node_modules/typescript/bin/tsc', ...options, 'example.mts')
})
