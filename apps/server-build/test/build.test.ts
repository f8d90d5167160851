import { appendFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isAlive } from '@onetrip/stack/processes.ts'
import { expect, test, vi } from 'vitest'
import { compilesForEver, compilesSlowly, tinyPatch, tinyRedis } from './tiny-redis.ts'

test('builds everything, prints the paths, and runs servers with their arguments in order', async () => {
  const tiny = await tinyRedis()
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
})

test('servers are built without the tools, and the tools without our patches', async () => {
  const tiny = await tinyRedis()
  const programsOf = async (...build: string[]) => {
    const { stdout } = await tiny.run(['build', ...build])
    return await readdir(stdout.trim().replace(/^\w+: /, ''))
  }
  expect(await programsOf('patched', ...tiny.fromArchive)).toEqual(['redis-server'])
  expect((await tiny.builds()).filter((name) => name.startsWith('tools'))).toEqual([])
  expect(await programsOf('tools')).toEqual(['redis-benchmark', 'redis-cli'])
  await writeFile(join(tiny.patches, '0001-say-patched.patch'), tinyPatch('patched otherwise'))
  expect(await tiny.run(['build', 'tools'])).toMatchObject({ code: 0, stderr: '' })
  expect(await tiny.run(['run', 'tools'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Allowed choices are patched, stock, baseline.'),
  })
})

test('finds a finished build without its source or a network', async () => {
  const tiny = await tinyRedis()
  await tiny.run(['build', 'patched', ...tiny.fromArchive])
  await rm(tiny.archive)
  const again = await tiny.run(['build', 'patched'])
  expect(again).toMatchObject({ code: 0, stderr: '' })
})

test('builds with and without a sanitizer are separate', async () => {
  const makefile =
    'redis-server redis-cli redis-benchmark: main.c\n' +
    '\t$(CC) $(REDIS_CFLAGS) $(if $(SANITIZER),-DSANITIZER_$(SANITIZER)) -o $@ $<\n'
  const tiny = await tinyRedis({ makefile })
  await tiny.run(['build', 'patched', ...tiny.fromArchive])
  const plain = await tiny.run(['build', 'patched'])
  const checked = await tiny.run(['build', 'patched', '--sanitizer', 'thread'])
  expect(checked.code).toBe(0)
  expect(checked.stdout).not.toBe(plain.stdout)
  expect(await tiny.builds()).toHaveLength(2)
  expect((await tiny.run(['build', 'patched'])).stdout).toBe(plain.stdout)
  const log = await readdir(join(tiny.redis, 'logs'))
  const logs = await Promise.all(
    log.map((name) => readFile(join(tiny.redis, 'logs', name), 'utf8')),
  )
  expect(logs.filter((text) => text.includes('-DSANITIZER_thread'))).toHaveLength(1)
  const refused = await tiny.run(['build', 'patched', '--sanitizer', 'valgrind'])
  expect(refused.stderr).toContain('Allowed choices are address, thread')
})

test('builds with and without TLS are separate', async () => {
  const makefile =
    'redis-server redis-cli redis-benchmark: main.c\n' +
    '\t$(CC) $(REDIS_CFLAGS) $(if $(filter yes,$(BUILD_TLS)),-DTLS) -o $@ $<\n'
  const tiny = await tinyRedis({ makefile })
  await tiny.run(['build', 'patched', ...tiny.fromArchive])
  const plain = await tiny.run(['build', 'patched'])
  // One compiler does not find the headers of OpenSSL, the other does.
  const compiler = async (name: string, headers: string) => {
    const path = join(tiny.directory, name)
    const script = `case "$*" in *openssl*) ${headers};; *) exec cc "$@";; esac`
    await writeFile(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    return path
  }
  const without = await tiny.run(['build', 'patched', '--tls'], {
    CC: await compiler('no-openssl', 'exit 1'),
  })
  expect(without).toMatchObject({ code: 1, stderr: expect.stringContaining('libssl-dev') })
  const CC = await compiler('openssl', 'exit 0')
  const built = await tiny.run(['build', 'patched', '--tls'], { CC })
  expect(built, built.stderr).toMatchObject({ code: 0 })
  expect(built.stdout).not.toBe(plain.stdout)
  expect((await tiny.run(['build', 'patched'])).stdout).toBe(plain.stdout)
})

test('without a compiler, a build from another machine is used', async () => {
  const tiny = await tinyRedis()
  await tiny.run(['build', 'patched', ...tiny.fromArchive])
  const ran = await tiny.run(['run'], { PATH: tiny.directory })
  expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining('kind: patched') })
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

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test(`${signal} ends the compilers and leaves no partial build`, async () => {
    const tiny = await tinyRedis({ makefile: compilesForEver })
    const { process: build, result } = tiny.start(['build', 'patched', ...tiny.fromArchive])
    const compiler = Number(
      await vi.waitFor(() => readFile(join(tiny.directory, 'compiler'), 'utf8'), 10_000),
    )
    build.kill(signal)
    expect((await result).signal).toBe(signal)
    expect(isAlive(compiler)).toBe(false)
    expect(await tiny.builds()).toEqual([])
    expect(await readdir(tiny.redis)).toEqual(['logs'])
  })
}

test('the next build removes what a killed build left', async () => {
  const tiny = await tinyRedis()
  const left = join(tiny.redis, 'tmp', 'ready', 'bin')
  await mkdir(left, { recursive: true })
  await writeFile(join(left, 'leftover'), '')
  const { stdout } = await tiny.run(['build', 'patched', ...tiny.fromArchive])
  expect(await readdir(stdout.trim().replace(/^\w+: /, ''))).toEqual(['redis-server'])
  expect((await readdir(tiny.redis)).sort()).toEqual(['builds', 'logs', 'source'])
})

test('a changed patch leads to another build', async () => {
  const tiny = await tinyRedis()
  const first = await tiny.run(['build', 'patched', ...tiny.fromArchive])
  await writeFile(join(tiny.patches, '0001-say-patched.patch'), tinyPatch('patched otherwise'))
  const second = await tiny.run(['build', 'patched'])
  expect(second.code).toBe(0)
  expect(second.stdout).not.toBe(first.stdout)
  expect((await tiny.run(['run', 'patched'])).stdout).toContain('kind: patched otherwise')
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
  expect(await tiny.run(['build', ...names])).toEqual({ ...built, stderr: '' })

  expect(await tiny.run(['build', 'patched@0002'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('has no patch 0002. It has 0001, 0003.'),
  })
  for (const name of ['patched@', 'patched@3', 'tools@0001', 'other@0001']) {
    expect(await tiny.run(['build', name])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('patched@0005 has the patches of patched up to 0005'),
    })
  }
})
