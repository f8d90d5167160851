import { mkdir } from 'node:fs/promises'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { homeOf } from '../src/home.ts'
import { knownSource } from '../src/sources/select.ts'
import { storeSource, unfinishedSource, useSource } from '../src/sources/source.ts'

test('a suite selects its cached source: the current one, otherwise the newest', async () => {
  const home = homeOf({ ONETRIP_HOME: await temporaryFolder() })
  await mkdir(home.sources, { recursive: true })
  const store = async (version: string, suite: string, fetchedAt: string) =>
    await storeSource(home, await unfinishedSource(home), {
      route: 'debian',
      from: `Debian ${version} (${suite})`,
      redisVersion: '8.0.6',
      archive: { file: 'redis.orig.tar.gz', sha256: '1'.repeat(64) },
      debian: { version, suite, file: 'redis.debian.tar.xz', sha256: '2'.repeat(64) },
      fetchedAt,
    })
  const old = await store('5:8.0.6-1', 'forky', '2026-10-01T00:00:00.000Z')
  const newest = await store('5:8.0.6-3', 'forky', '2026-11-01T00:00:00.000Z')
  const current = await store('5:8.0.6-4', 'trixie', '2026-11-02T00:00:00.000Z')
  await useSource(home, current)
  expect(await knownSource(home, {})).toEqual(current)
  expect(await knownSource(home, { suite: 'forky' })).toEqual(newest)
  expect(await knownSource(home, { suite: 'forky', refresh: true })).toBeUndefined()
  expect(await knownSource(home, { suite: 'sid' })).toBeUndefined()
  await useSource(home, old)
  expect(await knownSource(home, { suite: 'forky' })).toEqual(old)
})
