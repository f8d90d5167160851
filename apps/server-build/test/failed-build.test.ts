import { createHash } from 'node:crypto'
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { tinyPatch, tinyRedis } from './tiny-redis.ts'

test('a build fails if its programs do not run', async () => {
  const makefile =
    'redis-cli: main.c\n\t$(CC) $(REDIS_CFLAGS) -o $@ $<\n' +
    'redis-benchmark:\n\tprintf "#!/bin/sh\\nexit 1\\n" > $@; chmod +x $@\n'
  const tiny = await tinyRedis({ makefile })
  const failed = await tiny.run(['build', 'tools', ...tiny.fromArchive])
  expect(failed.stderr).toContain('redis-benchmark --version does not print 0.0.1')
  expect(failed.code).toBe(1)
  expect(await tiny.builds()).toEqual([])
})

test('rejects an archive with a wrong or unknown hash, and stores nothing', async () => {
  const tiny = await tinyRedis()
  const from = ['build', '--source', tiny.archive]
  const expected = 'ab'.repeat(32)
  const wrong = await tiny.run([...from, '--sha256', expected])
  expect(wrong.code).toBe(1)
  expect(wrong.stderr).toContain(`expected ${expected}`)
  expect(wrong.stderr).toContain(`actual   ${tiny.sha256}`)
  const unknown = await tiny.run(from)
  expect(unknown.code).toBe(1)
  expect(unknown.stderr).toContain(`--sha256 ${tiny.sha256}`)
  expect(await tiny.source()).toEqual([])
  expect(await tiny.builds()).toEqual([])
})

test('rejects a file that is not a source archive of Redis', async () => {
  const tiny = await tinyRedis()
  await writeFile(tiny.archive, 'not an archive')
  const sha256 = createHash('sha256').update('not an archive').digest('hex')
  const refused = await tiny.run(['build', '--source', tiny.archive, '--sha256', sha256])
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is not a source archive of Redis'),
  })
  expect(await tiny.source()).toEqual([])
})

test('names all patches that do not apply, and each hunk that fails', async () => {
  const tiny = await tinyRedis()
  const hunk = '@@ -1,1 +1,1 @@\n-not what is there\n+other\n'
  const files = `--- a/src/version.h\n+++ b/src/version.h\n${hunk}--- a/src/none.c\n+++ b/src/none.c\n${hunk}`
  const first = `${tinyPatch('patched', 'not what is there')}${files}`
  await writeFile(join(tiny.patches, '0001-say-patched.patch'), first)
  await writeFile(join(tiny.patches, '0002-say-twice.patch'), tinyPatch('twice', 'patched'))
  await appendFile(join(tiny.patches, 'patched.series'), '0002-say-twice.patch\n')
  const { code, stderr } = await tiny.run(['build', 'patched', ...tiny.fromArchive])
  expect(code).toBe(1)
  expect(stderr).toMatch(
    /0001-say-patched.*\n {2}src\/main.c, hunk @@ -8\n {2}src\/version.h, hunk @@ -1\n/,
  )
  expect(stderr).toContain('src/none.c: No such file')
  expect(stderr).toMatch(/0002-say-twice.patch .*\n {2}src\/main.c, hunk @@ -8\n/)
  expect(await tiny.builds()).toEqual([])
})

test('a failed compilation prints the end of its output and the path of the full log', async () => {
  const tiny = await tinyRedis({ makefile: 'redis-server:\n\techo "main.c:1: oops"; exit 3\n' })
  const failed = await tiny.run(['build', 'stock', ...tiny.fromArchive])
  expect(failed.code).toBe(1)
  expect(failed.stderr).toContain('main.c:1: oops')
  const log = /Full log: (\S+)/.exec(failed.stderr)?.[1] ?? ''
  expect(await readFile(log, 'utf8')).toContain('main.c:1: oops')
  expect(await tiny.builds()).toEqual([])
})

test('the source of a failed build does not become the current one', async () => {
  const tiny = await tinyRedis()
  const first = await tiny.run(['build', 'patched', ...tiny.fromArchive])
  const broken = await tinyRedis({ makefile: 'redis-server:\n\texit 3\n' })
  expect(await tiny.run(['build', 'patched', ...broken.fromArchive])).toMatchObject({ code: 1 })
  expect(await tiny.run(['build', 'patched'])).toMatchObject({ code: 0, stdout: first.stdout })
})

test('names missing tools, how to install them, and alternatives', async () => {
  const tiny = await tinyRedis()
  const failed = await tiny.run(['build', ...tiny.fromArchive], { PATH: tiny.directory })
  expect(failed.code).toBe(1)
  expect(failed.stderr).toContain('cc, c++, make, git cannot be run')
  expect(await tiny.source()).toEqual([])
})

test('names the file or URL of a source that is not available', async () => {
  const tiny = await tinyRedis()
  const noSource = join(tiny.directory, 'none.tar.gz')
  expect(await tiny.run(['build', '--source', noSource])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`The source archive ${noSource} does not exist`),
  })
  expect(await tiny.run(['build', '--source', 'http://127.0.0.1:1/redis.tar.gz'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('http://127.0.0.1:1/redis.tar.gz: fetch failed'),
  })
})

test('names a home that cannot be created', async () => {
  const tiny = await tinyRedis()
  const { code, stderr } = await tiny.run(['build', 'tools'], { ONETRIP_HOME: '/proc/onetrip' })
  expect(code).toBe(1)
  expect(stderr).toContain('Cannot create /proc/onetrip/redis')
  expect(stderr).toContain('Set ONETRIP_HOME')
})
