import { expect, test } from 'vitest'
import { revisionsOf } from '../src/sources/apt.ts'

const known = '763bf3005bcbf77c1d8145016a9627e45219665f99cf5a736bc73ec70faf0c8e'
const paragraph = (version: string, archive: string) => `Package: redis
Version: ${version}
Files:
 0123456789abcdef0123456789abcdef 2228 redis_${version}.dsc
Checksums-Sha256:
 ${'1'.repeat(64)} 2228 redis_${version}.dsc
 ${archive} 3873351 redis_8.0.6.orig.tar.gz
 ${'2'.repeat(64)} 42672 redis_${version}.debian.tar.xz
`

test('reads the revisions with a known upstream archive from the source index', () => {
  const index = [paragraph('5:8.0.6-3', known), paragraph('5:8.4.0-1', '3'.repeat(64))].join('\n')
  expect(revisionsOf(index)).toEqual([
    {
      version: '5:8.0.6-3',
      redisVersion: '8.0.6',
      archive: { file: 'redis_8.0.6.orig.tar.gz', sha256: known },
      patches: { file: 'redis_5:8.0.6-3.debian.tar.xz', sha256: '2'.repeat(64) },
    },
  ])
})

test('an index without Redis has no revisions', () => {
  expect(revisionsOf('')).toEqual([])
})
