import { expect, test } from 'vitest'
import { parseLocation } from '../src/index.ts'

test('one form for all locations of Redis', () => {
  expect(parseLocation('redis://a')).toEqual({ redis: { host: 'a', port: 6379 } })
  expect(parseLocation('redis+cluster://me:p%40ss@a:1,b:2')).toEqual({
    cluster: { nodes: ['a:1', 'b:2'], username: 'me', password: 'p@ss', tls: false },
  })
  const details = { sentinelPassword: 'x' }
  expect(parseLocation('rediss+sentinel://a:1/main', details)).toEqual({
    sentinel: { nodes: ['a:1'], name: 'main', tls: true, sentinelPassword: 'x' },
  })
})

test.each([
  'redis://me:secret@a/abc',
  'redis+cluster://me:secret@a:x',
  'redis+cluster://me:secret@a:1/name',
  'redis+cluster://me:secret%@a:1',
  'redis+sentinel://me:secret@a:1',
  'redis+sentinel://me:sec@ret@a:1/main',
])('the error of %s does not repeat the password', (url) => {
  expect(() => parseLocation(url)).toThrow(TypeError)
  expect(() => parseLocation(url)).not.toThrow(/sec|ret/)
})
