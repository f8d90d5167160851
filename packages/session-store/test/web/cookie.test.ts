import { expect, test } from 'vitest'
import { type CookieOptions, sessionCookie } from '../../src/web/cookie.ts'

const inAnHour = () => Date.now() + 3_600_000

test.each<[CookieOptions, string, string]>([
  [{}, '__Host-onetrip', 'Path=/; HttpOnly; Secure; SameSite=Lax'],
  [{ secure: false }, 'onetrip', 'Path=/; HttpOnly; SameSite=Lax'],
  [{ path: '/shop' }, '__Secure-onetrip', 'Path=/shop; HttpOnly; Secure; SameSite=Lax'],
  [
    { domain: 'shop.example', sameSite: 'none' },
    '__Secure-onetrip',
    'Domain=shop.example; Path=/; HttpOnly; Secure; SameSite=None',
  ],
  [{ name: 'sid', sameSite: 'strict' }, 'sid', 'Path=/; HttpOnly; Secure; SameSite=Strict'],
])('%o: written, read and removed as %s', (options, name, attributes) => {
  const cookie = sessionCookie(options)
  const written = cookie.write('a.b', inAnHour())
  const withoutTimes = (text: string) => text.replace(/ (?:Max-Age|Expires)=[^;]+;/g, '')
  expect(withoutTimes(written)).toBe(`${name}=a.b; ${attributes}`)
  const [cleared = ''] = cookie.cleared
  expect(withoutTimes(cleared)).toBe(`${name}=; ${attributes}`)
  expect(written).toMatch(/Max-Age=(?:3600|3599);/)
  expect(cleared).toContain('Max-Age=0')
  expect(cookie.read(`other=1; ${name}=a.b; more=2`)).toEqual(['a.b'])
})

test('reads only the cookie with its exact name, without verifying it', () => {
  const { read } = sessionCookie({ name: 'sid' })
  expect(read(undefined)).toEqual([])
  expect(read('')).toEqual([])
  expect(read('xsid=1; sidx=2; SID=3; sid')).toEqual([])
  expect(read('sid=')).toEqual([''])
  expect(read(' sid = a=b ;')).toEqual(['a=b'])
  expect(read('x=1;\t sid \t=\ta=b\t')).toEqual(['a=b'])
})

// Browsers accept these names from any host of the domain: the prefix `__Host-` does not protect them.
test.each(['\xa0', '\v', '\f', '\ufeff', '\u2028', '\r\n'])(
  'a cookie with %j before or after its name is another cookie',
  (space) => {
    const { read } = sessionCookie()
    expect(read(`${space}__Host-onetrip=evil`)).toEqual([])
    expect(read(`__Host-onetrip${space}=evil`)).toEqual([])
    expect(read(`a=1; ${space}__Host-onetrip=evil; __Host-onetrip=good`)).toEqual(['good'])
    expect(read(`__Host-onetrip=${space}good`)).toEqual([`${space}good`])
  },
)

test.each<[CookieOptions, string[]]>([
  [{}, ['Path=/']],
  [{ name: 'sid' }, ['Path=/']],
  [{ name: 'sid', path: '/shop' }, ['Path=/shop', 'Path=/']],
  [{ domain: 'shop.example' }, ['Domain=shop.example; Path=/', 'Path=/']],
  [
    { domain: 'shop.example', previous: [{}, { path: '/shop' }, { domain: 'example' }] },
    ['Domain=shop.example; Path=/', 'Path=/', 'Path=/shop', 'Domain=example; Path=/'],
  ],
])('%o: removed from %o, its own place first', (options, places) => {
  const { cleared, clearedElsewhere } = sessionCookie(options)
  expect(cleared.map((header) => header.replace(/^.*Max-Age=0; (.*); Expires=.*$/, '$1'))).toEqual(
    places,
  )
  expect(clearedElsewhere).toEqual(cleared.slice(1))
})

test('reads all cookies with its name', () => {
  const { read } = sessionCookie({ name: 'sid' })
  expect(read('sid=a; other=b; sid=a; sid=')).toEqual(['a', 'a', ''])
})

test.each([
  [{ sameSite: 'Lax' }, 'cookie.sameSite'],
  [{ sameSite: 'none', secure: false }, 'sameSite none needs secure'],
  [{ name: '__Host-sid', secure: false }, 'needs secure'],
  [{ name: '__Host-sid', path: '/shop' }, 'path /'],
  [{ name: '__HOST-sid', domain: 'shop.example' }, 'no domain'],
  [{ name: 'a b' }, 'name'],
  [{ domain: 'a;b' }, 'domain'],
  [{ path: 'shop' }, 'path'],
  [{ path: '/a;b' }, 'path'],
  [{ previous: { path: '/shop' } }, 'cookie.previous must be a list'],
  [{ previous: [{ name: 'sid' }] }, 'cookie.previous has no option name'],
  [{ name: 'sid', previous: [{ path: 'shop' }] }, 'cookie.previous.path must begin with /'],
  [{ previous: [{ path: '/shop' }] }, 'the path / and no domain'],
])('%o is refused: a browser would ignore the cookie', (options, words) => {
  const create = () => sessionCookie(options as CookieOptions)
  expect(create).toThrow(TypeError)
  expect(create).toThrow(words)
})
