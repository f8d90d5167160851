import { bytesOf, type Wire } from './wire.ts'

/** Tokens for hostile requests, created by the test. */
export interface Tokens {
  /** Valid, of an existing session. */
  genuine: string
  /** Valid, of a session of another user. */
  other: string
  /** Valid signature, but the session has ended. */
  gone: string
  /** Valid signature, but expired. */
  expired: string
  /** Signed with another secret. */
  foreign: string
  /** Issued one hour in the future. */
  early: string
}

export type Hostile = readonly [what: string, bytes: Buffer, status: number]

const JSON_TYPE = 'content-type: application/json'

/** Each request must get one response with this status, and change nothing. */
export function hostileRequests(tokens: Tokens): Hostile[] {
  const bearer = (token: string) => `authorization: Bearer ${token}`
  const cookie = (token: string) => `cookie: __Host-onetrip=${token}`
  const mine = bearer(tokens.genuine)
  const [id = '', signature = ''] = tokens.genuine.split('.')
  const [otherId = '', otherSignature = ''] = tokens.other.split('.')

  const view = (body: string | Buffer, headers: readonly string[] = [JSON_TYPE, mine]) =>
    bytesOf({ method: 'POST', path: '/views', headers, body })
  const item = (text: string) => view(JSON.stringify({ item: text }))
  const viewWith = (...headers: string[]) => view('{"item":"a"}', [JSON_TYPE, ...headers])
  const login = (body: string | Buffer, ...headers: string[]) =>
    bytesOf({ method: 'POST', path: '/login', headers: [JSON_TYPE, ...headers], body })
  const get = (path: string, ...headers: string[]) => bytesOf({ path, headers })
  const put = (path: string, ...headers: string[]) => bytesOf({ method: 'PUT', path, headers })
  const popular = (query: string) => get(`/items/popular?${query}`)
  const end = (session: string, ...headers: string[]) =>
    bytesOf({ method: 'DELETE', path: `/me/sessions/${session}`, headers })
  const raw = (...lines: string[]) => Buffer.from(`${lines.join('\r\n')}\r\n\r\n`)
  const wire = (request: Wire) => bytesOf(request)

  return [
    // Malformed JSON.
    ['an empty body', view(''), 400],
    ['an open brace', view('{'), 400],
    ['an unterminated string', view('{"item":"a'), 400],
    ['single quotes', view("{'item':'a'}"), 400],
    ['a trailing comma', view('{"item":"a",}'), 400],
    ['trailing characters', view('{"item":"a"}}'), 400],
    ['two documents', view('{"item":"a"}{"item":"b"}'), 400],
    ['NaN', view('{"item":NaN}'), 400],
    ['a comment', view('{"item":"a"/**/}'), 400],
    ['a control character in a string', view('{"item":"a\nb"}'), 400],

    // Wrong types.
    ['null instead of an object', view('null'), 400],
    ['an array instead of an object', view('[{"item":"a"}]'), 400],
    ['a string instead of an object', view('"item"'), 400],
    ['a number instead of a string', view('{"item":1}'), 400],
    ['null instead of a string', view('{"item":null}'), 400],
    ['true instead of a string', view('{"item":true}'), 400],
    ['an array instead of a string', view('{"item":["a"]}'), 400],
    ['an object instead of a string', view('{"item":{"$ne":""}}'), 400],
    ['no item', view('{}'), 400],
    ['an extra property', view('{"item":"a","count":-1000}'), 400],
    ['a number instead of a user name', login('{"user":7}'), 400],
    ['an extra property of a login', login('{"user":"eve","admin":true}'), 400],

    // Prototype keys.
    ['__proto__', view('{"item":"a","__proto__":{"user":"root"}}'), 400],
    ['__proto__ instead of an item', view('{"__proto__":{"item":"a"}}'), 400],
    ['constructor', view('{"item":"a","constructor":{"prototype":{"user":"root"}}}'), 400],
    ['toString', view('{"item":"a","toString":1}'), 400],
    ['__proto__ in a query', popular('__proto__[limit]=1'), 400],
    ['__proto__ as session id', end('__proto__', mine), 400],

    // Huge numbers.
    ['a number larger than a double', view('{"item":1e999}'), 400],
    ['a limit of 0', popular('limit=0'), 400],
    ['a limit below 0', popular('limit=-1'), 400],
    ['a limit of 101', popular('limit=101'), 400],
    ['a limit of 20 digits', popular('limit=99999999999999999999'), 400],
    ['a limit of 1e3', popular('limit=1e3'), 400],
    ['a limit with a fraction', popular('limit=1.5'), 400],
    ['a limit of NaN', popular('limit=NaN'), 400],
    ['an infinite limit', popular('limit=Infinity'), 400],
    ['two limits', popular('limit=1&limit=2'), 400],
    ['an unknown parameter', popular('offset=1'), 400],

    // Deep nesting.
    ['2,000 arrays', view('['.repeat(2_000) + ']'.repeat(2_000)), 400],
    ['600 objects', view(`${'{"item":'.repeat(400)}1${'}'.repeat(400)}`), 400],

    // Wrong content type.
    ['no content type', view('{"item":"a"}', [mine]), 415],
    ['an empty content type', view('{"item":"a"}', ['content-type:', mine]), 415],
    ['text', view('{"item":"a"}', ['content-type: text/plain', mine]), 415],
    ['a form', view('item=a', ['content-type: application/x-www-form-urlencoded', mine]), 415],
    [
      'multipart form data',
      view('--x--', ['content-type: multipart/form-data; boundary=x', mine]),
      415,
    ],
    ['XML', view('<item>a</item>', ['content-type: application/xml', mine]), 415],
    ['almost JSON', view('{"item":"a"}', ['content-type: application/jsonp', mine]), 415],

    // Oversized.
    ['a body of 5,000 bytes', item('x'.repeat(5_000)), 413],
    [
      'a content-length of a terabyte',
      view('{"item":"a"}', [JSON_TYPE, mine, 'content-length: 1099511627776']),
      413,
    ],
    [
      'chunks of 5,000 bytes',
      view(`1388\r\n${' '.repeat(5_000)}\r\n0\r\n\r\n`, [
        JSON_TYPE,
        mine,
        'transfer-encoding: chunked',
      ]),
      413,
    ],
    ['an item of 129 characters', item('x'.repeat(129)), 400],
    ['an item of 129 characters outside the BMP', item('\u{1f98a}'.repeat(129)), 400],
    ['an empty item', item(''), 400],
    ['a header of 20 kB', get('/me', `x-filler: ${'x'.repeat(20_000)}`), 431],
    ['a path of 20 kB', get(`/${'x'.repeat(20_000)}`), 431],
    ['a session id of 1,000 characters', end('x'.repeat(1_000), mine), 414],
    ['a token of 4,000 characters', viewWith(bearer('x'.repeat(4_000))), 401],

    // Control and bidirectional characters.
    ['a null character', view('{"item":"a\\u0000b"}'), 400],
    ['a new line', view('{"item":"a\\nb"}'), 400],
    ['an escape', view('{"item":"\\u001b[2J"}'), 400],
    ['a delete', view('{"item":"\\u007f"}'), 400],
    ['a next line', view('{"item":"\\u0085"}'), 400],
    ['right to left', view('{"item":"\\u202egnp.exe"}'), 400],
    ['an isolate', view('{"item":"a\\u2066b"}'), 400],
    ['an Arabic letter mark', view('{"item":"\\u061c"}'), 400],
    ['a lone surrogate', view('{"item":"\\ud83e"}'), 400],
    ['a user name with an override', login('{"user":"\\u202eeve"}'), 400],

    // Invalid UTF-8, null bytes.
    ['an invalid UTF-8 byte', view(Buffer.from('{"item":"\xff"}', 'latin1')), 400],
    ['a truncated UTF-8 character', view(Buffer.from('{"item":"\xc3"}', 'latin1')), 400],
    ['an overlong UTF-8 encoding', view(Buffer.from('{"item":"\xc0\xaf"}', 'latin1')), 400],
    ['a user name with invalid UTF-8', login(Buffer.from('{"user":"eve\xfe"}', 'latin1')), 400],
    ['UTF-16', view(Buffer.from('{"item":"a"}', 'utf16le')), 400],
    ['a null byte in a body', view(Buffer.from('{"item":"a"}\0')), 400],
    ['a null byte in a header', viewWith(bearer('a\0b')), 400],
    ['a null byte in a path', get('/items/popular\0'), 400],
    ['an escaped null byte in a path', end('%00', mine), 400],
    ['a truncated escape', end('%e0%a4%a', mine), 400],
    ['a path traversal', get('/me/../../etc/passwd', mine), 404],
    ['an escaped path traversal', end('..%2f..%2frecent%3a', mine), 400],

    // Tokens.
    ['no token', viewWith(), 401],
    ['an empty token', viewWith(bearer('')), 401],
    ['a token with another scheme', viewWith(`authorization: Basic ${tokens.genuine}`), 401],
    ['an id without a signature', viewWith(bearer(id)), 401],
    ['a forged signature', viewWith(bearer(`${id}.${'A'.repeat(43)}`)), 401],
    ['the signature of another id', viewWith(bearer(`${id}.${otherSignature}`)), 401],
    ['the signature with another id', viewWith(bearer(`${otherId}.${signature}`)), 401],
    ['a truncated token', viewWith(bearer(tokens.genuine.slice(0, -1))), 401],
    ['a token with an extra character', viewWith(bearer(`${tokens.genuine}A`)), 401],
    ['a signature in non-canonical base64', viewWith(bearer(respelled(tokens.genuine))), 401],
    ['a token in a list', viewWith(bearer(`${tokens.foreign}, ${tokens.genuine}`)), 401],
    ['a token signed with another secret', viewWith(bearer(tokens.foreign)), 401],
    ['an expired token', viewWith(bearer(tokens.expired)), 401],
    ['a token from the future', viewWith(bearer(tokens.early)), 401],
    ['the token of an ended session, POST /views', viewWith(bearer(tokens.gone)), 401],
    ['the token of an ended session, GET /me', get('/me', bearer(tokens.gone)), 401],
    ['the token of an ended session, GET /me/views', get('/me/views', bearer(tokens.gone)), 401],
    ['the token of an ended session, DELETE /me/sessions', endAll(bearer(tokens.gone)), 401],
    ['a forged token in a cookie', viewWith(cookie(`${id}.${'A'.repeat(43)}`)), 401],
    ['a cookie without the prefix', viewWith(`cookie: onetrip=${tokens.genuine}`), 401],
    ['a token in a query', get(`/me?token=${tokens.genuine}`), 401],
    ["the id of somebody else's session", end(otherId, mine), 404],

    // Cross-site requests.
    [
      'a cookie from another site',
      viewWith(cookie(tokens.genuine), 'sec-fetch-site: cross-site'),
      403,
    ],
    [
      'a cookie from another origin',
      viewWith(cookie(tokens.genuine), 'origin: http://evil.example'),
      403,
    ],
    ['a cookie from an opaque origin', viewWith(cookie(tokens.genuine), 'origin: null'), 403],
    ['a login from another origin', login('{"user":"eve"}', 'origin: http://evil.example'), 403],
    [
      'a logout from another site',
      endAll(cookie(tokens.genuine), 'sec-fetch-site: same-site'),
      403,
    ],

    // Duplicate headers.
    ['two tokens', viewWith(bearer(tokens.foreign), mine), 401],
    ['two tokens, the valid one first', viewWith(mine, bearer(tokens.foreign)), 401],
    ['two cookies', viewWith(`${cookie(tokens.foreign)}; __Host-onetrip=${tokens.genuine}`), 400],
    ['two hosts', get('/healthz', 'host: a', 'host: b'), 400],
    ['the same host twice', get('/healthz', 'host: a', 'Host: a'), 400],
    ['two hosts, one of them empty', get('/healthz', 'host:', 'host: a'), 400],
    ['a list of hosts', get('/healthz', 'host: a, b'), 400],
    ['a list of hosts without a space', get('/healthz', 'host: a,b'), 400],
    ['two hosts and an unknown path', get('/admin', 'host: a', 'host: b'), 400],
    ['two hosts and a method that is not allowed', put('/views', 'host: a', 'host: b'), 400],
    ['a host with a space', get('/healthz', 'host: a b'), 400],
    ['a host with a path', get('/healthz', 'host: a/b'), 400],
    ['a host with a user', get('/healthz', 'host: ada@a'), 400],
    ['a host with half a bracket', get('/healthz', 'host: [::1'), 400],
    ['a host with an invalid port', get('/healthz', 'host: a:b'), 400],
    [
      'two lengths',
      view('{"item":"a"}', [JSON_TYPE, mine, 'content-length: 12', 'content-length: 0']),
      400,
    ],
    [
      'content-length and transfer-encoding',
      view('0\r\n\r\n', [JSON_TYPE, mine, 'content-length: 5', 'transfer-encoding: chunked']),
      400,
    ],
    [
      'chunked twice',
      view('0\r\n\r\n', [JSON_TYPE, mine, 'transfer-encoding: chunked, identity']),
      400,
    ],

    // Invalid HTTP, and unusual HTTP.
    ['garbage', raw('%&/()=?'), 400],
    ['a Redis command', raw('*1', '$8', 'FLUSHALL'), 400],
    ['garbage after a request', pipelined(get('/healthz'), raw('%&/()=?')), 200],
    ['a malformed header', raw('GET /healthz HTTP/1.1', 'host: a', 'no colon'), 400],
    ['a folded header', raw('GET /healthz HTTP/1.1', 'host: a', 'x-a: b', ' c'), 400],
    ['a malformed length', view('{"item":"a"}', [JSON_TYPE, mine, 'content-length: 1e1']), 400],
    ['a negative length', view('{"item":"a"}', [JSON_TYPE, mine, 'content-length: -1']), 400],
    ['a malformed chunk', view('z\r\n', [JSON_TYPE, mine, 'transfer-encoding: chunked']), 400],
    ['no host', raw('GET /healthz HTTP/1.1', 'connection: close'), 400],
    ['HTTP/9.9', raw('GET /healthz HTTP/9.9', 'host: a'), 400],
    ['HTTP/2', raw('PRI * HTTP/2.0', '', 'SM'), 400],
    ['a method in lower case', raw('get /healthz HTTP/1.1', 'host: a'), 400],
    ['an unknown method', wire({ method: 'BREW', path: '/views' }), 400],
    ['a method that is not allowed', wire({ method: 'PUT', path: '/views', headers: [mine] }), 405],
    ['TRACE', wire({ method: 'TRACE', path: '/me', headers: [mine] }), 405],
    [
      'a method override header',
      wire({ path: '/me/sessions', headers: ['x-http-method-override: DELETE'] }),
      401,
    ],
    ['an unknown path', get('/admin', mine), 404],
    ['an unknown Expect header', get('/admin', 'expect: magic'), 404],
  ]

  function endAll(...headers: string[]) {
    return bytesOf({ method: 'DELETE', path: '/me/sessions', headers })
  }
}

/** Two requests on one connection; the first keeps it open. */
const pipelined = (first: Buffer, second: Buffer) =>
  Buffer.concat([Buffer.from(first.toString().replace('connection: close\r\n', '')), second])

/**
 * The same bytes in non-canonical base64: the last of 43 characters has two unused bits.
 */
function respelled(token: string): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const last = letters.indexOf(token.at(-1) ?? '')
  return `${token.slice(0, -1)}${letters[last + 1]}`
}
