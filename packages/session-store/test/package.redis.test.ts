import { execFileSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const source = join(root, 'packages/session-store')
const examples = readdirSync(join(source, 'examples'))

test.each(['ioredis', 'ioredis-5'])(
  'what npm pack gives works in an empty project with %s',
  { timeout: 180_000 },
  async (ioredis) => {
    const redis = await redisForThisTest()
    const project = mkdtempSync(join(tmpdir(), 'onetrip-package-'))
    onTestFinished(() => rmSync(project, { recursive: true, force: true }))
    const run = (command: string, args: string[], cwd: string) =>
      execFileSync(command, args, {
        cwd,
        encoding: 'utf8',
        env: {
          PATH: process.env.PATH,
          HOME: project,
          REDIS_URL: `unix://${redis.socket}`,
          SESSION_SECRET: 'a-secret-for-tests-a-secret-for-tests',
        },
      })

    run(process.execPath, ['build.ts'], source)
    const packed = run('npm', ['pack', './dist', '--json', '--pack-destination', project], source)
    const [{ filename, files }] = JSON.parse(packed)
    const names = (files as { path: string }[]).map(({ path }) => path)
    expect(names).toEqual(
      expect.arrayContaining(['index.js', 'index.d.ts', 'README.md', 'LICENSE']),
    )
    expect(names.filter((name) => /test|\.ts$/.test(name) && !name.endsWith('.d.ts'))).toEqual([])

    const installed = join(project, 'node_modules/@onetrip/session-store')
    mkdirSync(installed, { recursive: true })
    run('tar', ['-xzf', join(project, filename), '--strip-components=1', '-C', installed], project)
    const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
    expect(manifest.peerDependencies).toEqual({ ioredis: '^5.11.1 || ^6.0.0' })
    expect(Object.keys(manifest.dependencies)).not.toContain('ioredis')
    const packages = { ioredis, typescript: 'typescript', '@types/node': '@types/node' }
    for (const name of Object.keys(manifest.dependencies)) Object.assign(packages, { [name]: name })
    for (const [name, source] of Object.entries(packages)) {
      const target = join(project, 'node_modules', name)
      mkdirSync(dirname(target), { recursive: true })
      symlinkSync(join(root, 'node_modules', source), target)
    }
    // These examples have no types of their own, so that they are JavaScript as they stand.
    cpSync(join(source, 'examples/connection.ts'), join(project, 'example.mjs'))
    const output = run(process.execPath, ['example.mjs'], project)
    expect(output).toContain("{ user: 'ada', views: 1 }")
    cpSync(join(source, 'examples/session-data.ts'), join(project, 'data.mjs'))
    expect(run(process.execPath, ['data.mjs'], project).split('\n').slice(0, 3)).toEqual([
      "ada { fields: { cart: [ 'book' ], theme: 'dark' }, version: 3 }",
      "[ 'book', 'pen' ]",
      '1',
    ])
    cpSync(join(source, 'examples/tenants.ts'), join(project, 'tenants.mjs'))
    const tenants = run(process.execPath, ['tenants.mjs'], project)
    expect(tenants).toBe("{ user: 'ada', views: 1 }\nONETRIP_UNKNOWN_SESSION\n")

    // The types hold for both, too.
    cpSync(join(source, 'examples/connection.ts'), join(project, 'example.mts'))
    const options = ['--strict', '--noEmit', '--types', 'node', '--module', 'nodenext']
    run(process.execPath, ['node_modules/typescript/bin/tsc', ...options, 'example.mts'], project)
  },
)

test.each(examples)('the README shows %s as it is', (name) => {
  const readme = readFileSync(join(source, 'README.md'), 'utf8')
  expect(readme).toContain(readFileSync(join(source, 'examples', name), 'utf8').trim())
})
