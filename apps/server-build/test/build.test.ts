import { execFileSync } from 'node:child_process'
import { appendFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isAlive } from '@onetrip/stack/processes.ts'
import { expect, test, vi } from 'vitest'
import { compilesForEver, compilesSlowly, tinyPatch, tinyRedis } from './tiny-redis.ts'

test('builds everything, prints the paths, and runs servers with their arguments in order', async () => {
  const tiny = await tinyRedis()
  execFileSync('git', ['init', '--quiet', tiny.directory]) // patches apply inside a repository, too
  const built = await tiny.run(['build', ...tiny.fromArchive])
  expect(built).toMatchObject({ code: 0 })
  expect(built.stdout.trim().split('\n')).toEqual([
    expect.stringMatching(/^patched: .*\/patched-[0-9a-f]{12}\/bin$/),
    expect.stringMatching(/^stock: .*\/stock-[0-9a-f]{12}\/bin$/),
    expect.stringMatching(/^baseline: .*\/baseline-[0-9a-f]{12}\/bin$/),
    expect.stringMatching(/^tools: .*\/tools-[0-9a-f]{12}\/bin$/),
  ])
  expect(built.stderr).toContain("LACKS DEBIAN'S SECURITY FIXES")

  const { process, result } = tiny.start(['run', 'patched', '--port', '0', '--', '--save', 'x y'])
  const ran = await result
  expect(ran.stdout).toContain('kind: patched\n')
  expect(ran.stdout, 'the started process is the server').toContain(`process: ${process.pid}\n`)
  expect(ran.stdout).toMatch(
    /argument: --port\nargument: 0\n[\s\S]*argument: --save\nargument: x y\n$/,
  )
  expect((await tiny.run(['run', 'stock'])).stdout).toContain('kind: plain\n')
  // A finished build needs no source, network or compiler.
  await rm(tiny.archive)
  expect(await tiny.run(['run'], { PATH: tiny.directory })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('kind: patched'),
  })
})

test('servers are built without the tools, and the tools without our patches', async () => {
  const tiny = await tinyRedis()
  const programsOf = async (...build: string[]) => {
    const { stdout } = await tiny.run(['build', ...build])
    return await readdir(stdout.trim().replace(/^\w+: /, ''))
  }
  expect(await programsOf('patched', ...tiny.fromArchive)).toEqual(['redis-server'])
  expect(await programsOf('tools')).toEqual(['redis-benchmark', 'redis-cli'])
  // A changed patch leads to another server, and to the same tools.
  await writeFile(join(tiny.patches, '0001-say-patched.patch'), tinyPatch('patched otherwise'))
  expect(await tiny.run(['build', 'tools'])).toMatchObject({ code: 0, stderr: '' })
  expect((await tiny.run(['run', 'patched'])).stdout).toContain('kind: patched otherwise')
})

test('builds with a sanitizer and with TLS, which needs the headers of OpenSSL, are separate', async () => {
  const tiny = await tinyRedis()
  const plain = await tiny.run(['build', 'patched', ...tiny.fromArchive])
  const checked = await tiny.run(['build', 'patched', '--sanitizer', 'thread'])
  expect(checked).toMatchObject({ code: 0, stdout: expect.not.stringContaining(plain.stdout) })
  const buildTls = async (headers: string) => {
    const CC = join(tiny.directory, 'compiler')
    const script = `case "$*" in *openssl*) ${headers};; *) exec cc "$@";; esac`
    await writeFile(CC, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    return await tiny.run(['build', 'patched', '--tls'], { CC })
  }
  const without = { code: 1, stderr: expect.stringContaining('libssl-dev') }
  expect(await buildTls('exit 1')).toMatchObject(without)
  const built = await buildTls('exit 0')
  expect(built, built.stderr).toMatchObject({ code: 0 })
  expect(built.stdout).not.toBe(plain.stdout)
  expect((await tiny.run(['build', 'patched'])).stdout).toBe(plain.stdout)
})

test('two processes that need the same build build it once', async () => {
  const tiny = await tinyRedis({ makefile: compilesSlowly })
  const both = await Promise.all(
    [1, 2].map(() => tiny.run(['build', 'patched', ...tiny.fromArchive])),
  )
  expect(both.map(({ code }) => code)).toEqual([0, 0])
  expect(both[0]?.stdout).toBe(both[1]?.stdout)
  const steps = both.map(({ stderr }) => stderr).join('')
  expect(steps.match(/^Compiling \w+$/gm)).toHaveLength(1)
  expect(steps.match(/waiting for it/g)).toHaveLength(1)
  expect(await tiny.builds()).toHaveLength(1)
})

test('an interrupt ends the compilers and leaves no partial build', async () => {
  const tiny = await tinyRedis({ makefile: compilesForEver })
  const { process: build, result } = tiny.start(['build', 'patched', ...tiny.fromArchive])
  const compiler = Number(
    await vi.waitFor(() => readFile(join(tiny.directory, 'compiler'), 'utf8'), 10_000),
  )
  build.kill('SIGINT')
  expect((await result).signal).toBe('SIGINT')
  expect(isAlive(compiler)).toBe(false)
  expect(await readdir(tiny.redis)).toEqual(['logs'])
})

test('the next build removes what a killed build left', async () => {
  const tiny = await tinyRedis()
  const left = join(tiny.redis, 'tmp', 'ready', 'bin')
  await mkdir(left, { recursive: true })
  await writeFile(join(left, 'leftover'), '')
  const { stdout } = await tiny.run(['build', 'patched', ...tiny.fromArchive])
  expect(await readdir(stdout.trim().replace(/^\w+: /, ''))).toEqual(['redis-server'])
  expect((await readdir(tiny.redis)).sort()).toEqual(['builds', 'logs', 'source'])
})

test('a build can have only the first patches of its series', async () => {
  const tiny = await tinyRedis()
  const second = '0003-say-twice.patch'
  await writeFile(join(tiny.patches, second), tinyPatch('patched twice', 'patched'))
  await appendFile(join(tiny.patches, 'patched.series'), `${second}\n`)
  const names = ['patched', 'patched@0001', 'patched@0003']
  const built = await tiny.run(['build', ...names, ...tiny.fromArchive])
  expect(built, built.stderr).toMatchObject({ code: 0 })
  const kindOf = async (name: string) => (await tiny.run(['run', name])).stdout.split('\n', 1)[0]
  expect(await Promise.all(names.map(kindOf))).toEqual([
    'kind: patched twice',
    'kind: patched',
    'kind: patched twice',
  ])
  expect(await tiny.run(['build', 'patched@0002'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('has no patch 0002. It has 0001, 0003.'),
  })
})
