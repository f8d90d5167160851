import { expect, test } from 'vitest'
import { parseRedisUrl, redisUrlOf, withCredentials } from '../src/index.ts'

test.each([
  ['redis://h', 'tcp', { host: 'h', port: 6379 }],
  ['redis://127.0.0.1:6390/', 'tcp', { host: '127.0.0.1', port: 6390 }],
  ['redis://h:65535/15', 'tcp', { host: 'h', port: 65535, db: 15 }],
  ['redis://h?db=2', 'tcp', { host: 'h', port: 6379, db: 2 }],
  ['redis://h/?db=0', 'tcp', { host: 'h', port: 6379 }],
  ['redis://[::1]/3', 'tcp', { host: '::1', port: 6379, db: 3 }],
  ['rediss://h', 'tls', { host: 'h', port: 6379, tls: { servername: 'h' } }],
  ['rediss://127.0.0.1', 'tls', { host: '127.0.0.1', port: 6379, tls: {} }],
  ['redis://me@h', 'tcp', { host: 'h', port: 6379, username: 'me' }],
  ['redis://:s%40%2F%25@h', 'tcp', { host: 'h', port: 6379, password: 's@/%' }],
  ['unix:///run/redis.sock', 'unix', { path: '/run/redis.sock' }],
  ['unix:///run/my%20redis@1.sock?db=2', 'unix', { path: '/run/my redis@1.sock', db: 2 }],
  [
    'unix://me:pw@localhost/run/redis.sock',
    'unix',
    { path: '/run/redis.sock', username: 'me', password: 'pw' },
  ],
])('%s is %s and %j', (url, transport, options) => {
  expect(parseRedisUrl(url)).toEqual({ transport, options })
})

const refused: [string, string][] = [
  ['', 'must look like'],
  ['h:6379', 'must begin with'],
  ['//h', 'must look like'],
  ['redis://', 'host'],
  ['redis:///5', 'host'],
  ['redis://h:0', 'port'],
  ['redis://h:65536', 'must look like'],
  ['redis://h/abc', 'database'],
  ['redis://h/-1', 'database'],
  ['redis://h/1e1', 'database'],
  ['redis://h/%35', 'database'],
  ['redis://h/99999999999', 'database'],
  ['redis://h?db=', 'database'],
  ['redis://h/1?db=1', 'more than once'],
  ['redis://h?family=6', '"family"'],
  ['redis://h#5', 'fragment'],
  ['unix://run/redis.sock', 'absolute path'],
  ['unix:relative', 'absolute path'],
  ['unix:///run/', 'absolute path'],
  ['unix:///run/%00', 'absolute path'],
  ['unix://localhost:6379/run/redis.sock', 'absolute path'],
  ['unix:///run/%zz', '%25'],
  ['redis://:secret%@h', '%25'],
  // A password that is not percent-encoded ends up in other parts of the URL.
  ['redis://me:12/secret@h', 'percent-encoded'],
  ['redis://me:12#secret@h', 'percent-encoded'],
  ['redis://:secret/@h', 'must look like'],
  ['unix://me:12?secret=1@localhost/s', 'absolute path'],
]

test.each(refused)('%s is refused: %s', (url, words) => {
  expect(() => parseRedisUrl(url)).toThrow(TypeError)
  expect(() => parseRedisUrl(url)).toThrow(words)
  expect(() => parseRedisUrl(url)).not.toThrow('secret')
})

const password = 'a/b c'

test.for([
  ['redis://h/5', 'redis://api:a%2Fb%20c@h/5'],
  ['redis://me@[::1]:1', 'redis://me:a%2Fb%20c@[::1]:1'],
  ['redis+cluster://a:1,b:2', 'redis+cluster://api:a%2Fb%20c@a:1,b:2'],
  ['unix:///run/s?db=2', 'unix://api:a%2Fb%20c@localhost/run/s?db=2'],
  ['unix://me@localhost/run/s', 'unix://me:a%2Fb%20c@localhost/run/s'],
] as const)('%s with a user and a password is %s', ([url, complete]) => {
  expect(withCredentials(url, { username: 'api', password })).toBe(complete)
})

test.for(['redis://me:pw@h', 'redis://a@b@h', 'redis:///5', 'redis://', 'h', ''])(
  '%s takes no password',
  (url) => {
    expect(() => withCredentials(url, { password })).toThrow(/must name a host and contain no/)
  },
)

test('a file has the password that REDIS_URL lacks', () => {
  expect(redisUrlOf({ REDIS_PASSWORD_FILE: '/nowhere' })).toBe('')
  expect(redisUrlOf({ REDIS_URL: 'redis://h', REDIS_PASSWORD_FILE: '' })).toBe('redis://h')
  expect(() => redisUrlOf({ REDIS_URL: 'redis://h', REDIS_PASSWORD_FILE: '/nowhere' })).toThrow(
    /^REDIS_PASSWORD_FILE cannot be read: .*\/nowhere/,
  )
})
