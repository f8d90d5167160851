import { expect, test } from 'vitest'
import { newestRevision } from '../src/sources/apt.ts'

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

test('finds the newest revision with a known upstream archive in the source index', () => {
  const index = [
    paragraph('5:8.0.6-3', known),
    paragraph('5:8.0.6-12', known),
    paragraph('5:8.0.6-4', known),
    paragraph('5:8.4.0-1', '3'.repeat(64)),
  ].join('\n')
  expect(newestRevision(index)).toEqual({
    version: '5:8.0.6-12',
    archive: { file: 'redis_8.0.6.orig.tar.gz', sha256: known },
    debian: { file: 'redis_5:8.0.6-12.debian.tar.xz', sha256: '2'.repeat(64) },
  })
  expect(newestRevision('')).toBeUndefined()
})
