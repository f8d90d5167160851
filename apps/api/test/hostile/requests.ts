import { bytesOf, type Wire } from './wire.ts'

/** Tokens to be hostile with, made by the test. */
export interface Tokens {
  /** Of a session that is there. */
  genuine: string
  /** Of a session of somebody else. */
  other: string
  /** Genuine, but its session has ended. */
  gone: string
  /** Genuine, but older than a token may be. */
  expired: string
  /** Signed with another secret. */
  foreign: string
  /** Issued in an hour from now. */
  early: string
}

export type Hostile = readonly [what: string, bytes: Buffer, status: number]

const JSON_TYPE = 'content-type: application/json'

/** Every one of them has to be answered once, with its status, and to change nothing. */
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
    ['a string that does not end', view('{"item":"a'), 400],
    ['single quotes', view("{'item':'a'}"), 400],
    ['a comma too many', view('{"item":"a",}'), 400],
    ['something behind it', view('{"item":"a"}}'), 400],
    ['two documents', view('{"item":"a"}{"item":"b"}'), 400],
    ['NaN', view('{"item":NaN}'), 400],
    ['a comment', view('{"item":"a"/**/}'), 400],
    ['a control character in a string', view('{"item":"a\nb"}'), 400],

    // Wrong types.
    ['null for an object', view('null'), 400],
    ['an array for an object', view('[{"item":"a"}]'), 400],
    ['a string for an object', view('"item"'), 400],
    ['a number for a string', view('{"item":1}'), 400],
    ['null for a string', view('{"item":null}'), 400],
    ['true for a string', view('{"item":true}'), 400],
    ['an array for a string', view('{"item":["a"]}'), 400],
    ['an object for a string', view('{"item":{"$ne":""}}'), 400],
    ['no item', view('{}'), 400],
    ['an item too many', view('{"item":"a","count":-1000}'), 400],
    ['a number for a user', login('{"user":7}'), 400],
    ['a user who wants more', login('{"user":"eve","admin":true}'), 400],

    // Prototype keys.
    ['__proto__', view('{"item":"a","__proto__":{"user":"root"}}'), 400],
    ['__proto__ for an item', view('{"__proto__":{"item":"a"}}'), 400],
    ['constructor', view('{"item":"a","constructor":{"prototype":{"user":"root"}}}'), 400],
    ['toString', view('{"item":"a","toString":1}'), 400],
    ['__proto__ in a query', popular('__proto__[limit]=1'), 400],
    ['__proto__ for a session', end('__proto__', mine), 400],

    // Huge numbers.
    ['more than a double holds', view('{"item":1e999}'), 400],
    ['a limit of 0', popular('limit=0'), 400],
    ['a limit below 0', popular('limit=-1'), 400],
    ['a limit of 101', popular('limit=101'), 400],
    ['a limit of 20 digits', popular('limit=99999999999999999999'), 400],
    ['a limit of 1e3', popular('limit=1e3'), 400],
    ['a limit with a fraction', popular('limit=1.5'), 400],
    ['a limit that is no number', popular('limit=NaN'), 400],
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
      'a form of parts',
      view('--x--', ['content-type: multipart/form-data; boundary=x', mine]),
      415,
    ],
    ['XML', view('<item>a</item>', ['content-type: application/xml', mine]), 415],
    ['almost JSON', view('{"item":"a"}', ['content-type: application/jsonp', mine]), 415],

    // Oversized.
    ['a body of 5,000 bytes', item('x'.repeat(5_000)), 413],
    [
      'a body said to be a terabyte',
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
    ['an item of 129 characters of two units', item('\u{1f98a}'.repeat(129)), 400],
    ['no character', item(''), 400],
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
    ['half a pair', view('{"item":"\\ud83e"}'), 400],
    ['a user who reverses', login('{"user":"\\u202eeve"}'), 400],

    // Invalid UTF-8, null bytes.
    ['a byte that is no UTF-8', view(Buffer.from('{"item":"\xff"}', 'latin1')), 400],
    ['half a character', view(Buffer.from('{"item":"\xc3"}', 'latin1')), 400],
    ['a byte too long', view(Buffer.from('{"item":"\xc0\xaf"}', 'latin1')), 400],
    ['a user who is no UTF-8', login(Buffer.from('{"user":"eve\xfe"}', 'latin1')), 400],
    ['UTF-16', view(Buffer.from('{"item":"a"}', 'utf16le')), 400],
    ['a null byte in a body', view(Buffer.from('{"item":"a"}\0')), 400],
    ['a null byte in a header', viewWith(bearer('a\0b')), 400],
    ['a null byte in a path', get('/items/popular\0'), 400],
    ['an escaped null byte in a path', end('%00', mine), 400],
    ['half an escape', end('%e0%a4%a', mine), 400],
    ['a path that climbs', get('/me/../../etc/passwd', mine), 404],
    ['an escaped path that climbs', end('..%2f..%2frecent%3a', mine), 400],

    // Tokens.
    ['no token', viewWith(), 401],
    ['an empty token', viewWith(bearer('')), 401],
    ['a token of another scheme', viewWith(`authorization: Basic ${tokens.genuine}`), 401],
    ['an id for a token', viewWith(bearer(id)), 401],
    ['a forged signature', viewWith(bearer(`${id}.${'A'.repeat(43)}`)), 401],
    ['the signature of another id', viewWith(bearer(`${id}.${otherSignature}`)), 401],
    ['another id with a signature', viewWith(bearer(`${otherId}.${signature}`)), 401],
    ['a truncated token', viewWith(bearer(tokens.genuine.slice(0, -1))), 401],
    ['a token with more', viewWith(bearer(`${tokens.genuine}A`)), 401],
    ['a signature spelled otherwise', viewWith(bearer(respelled(tokens.genuine))), 401],
    ['a token in a list', viewWith(bearer(`${tokens.foreign}, ${tokens.genuine}`)), 401],
    ['a token signed by somebody else', viewWith(bearer(tokens.foreign)), 401],
    ['an expired token', viewWith(bearer(tokens.expired)), 401],
    ['a token of the future', viewWith(bearer(tokens.early)), 401],
    ['the token of a session that has ended', viewWith(bearer(tokens.gone)), 401],
    ['the same, to see who it is', get('/me', bearer(tokens.gone)), 401],
    ['the same, to see its views', get('/me/views', bearer(tokens.gone)), 401],
    ['the same, to log out everywhere', endAll(bearer(tokens.gone)), 401],
    ['a forged token in a cookie', viewWith(cookie(`${id}.${'A'.repeat(43)}`)), 401],
    ['a cookie without the prefix', viewWith(`cookie: onetrip=${tokens.genuine}`), 401],
    ['a token in a query', get(`/me?token=${tokens.genuine}`), 401],
    ["the id of somebody else's session", end(otherId, mine), 404],

    // From pages of another origin.
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
      'logging out from another site',
      endAll(cookie(tokens.genuine), 'sec-fetch-site: same-site'),
      403,
    ],

    // Duplicate headers.
    ['two tokens', viewWith(bearer(tokens.foreign), mine), 401],
    ['two tokens, the genuine one first', viewWith(mine, bearer(tokens.foreign)), 401],
    ['two cookies', viewWith(`${cookie(tokens.foreign)}; __Host-onetrip=${tokens.genuine}`), 400],
    ['two hosts', get('/healthz', 'host: a', 'host: b'), 400],
    ['the same host twice', get('/healthz', 'host: a', 'Host: a'), 400],
    ['two hosts, one of them empty', get('/healthz', 'host:', 'host: a'), 400],
    ['a list of hosts', get('/healthz', 'host: a, b'), 400],
    ['a list of hosts without a space', get('/healthz', 'host: a,b'), 400],
    ['two hosts on a path that there is not', get('/admin', 'host: a', 'host: b'), 400],
    ['two hosts for a method that there is not', put('/views', 'host: a', 'host: b'), 400],
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
      'a length and chunks',
      view('0\r\n\r\n', [JSON_TYPE, mine, 'content-length: 5', 'transfer-encoding: chunked']),
      400,
    ],
    [
      'chunks of chunks',
      view('0\r\n\r\n', [JSON_TYPE, mine, 'transfer-encoding: chunked, identity']),
      400,
    ],

    // What is no HTTP, and HTTP that nobody asked for.
    ['garbage', raw('%&/()=?'), 400],
    ['a Redis command', raw('*1', '$8', 'FLUSHALL'), 400],
    ['garbage behind a request', pipelined(get('/healthz'), raw('%&/()=?')), 200],
    ['a header that is none', raw('GET /healthz HTTP/1.1', 'host: a', 'no colon'), 400],
    ['a folded header', raw('GET /healthz HTTP/1.1', 'host: a', 'x-a: b', ' c'), 400],
    ['a length that is none', view('{"item":"a"}', [JSON_TYPE, mine, 'content-length: 1e1']), 400],
    ['a length below 0', view('{"item":"a"}', [JSON_TYPE, mine, 'content-length: -1']), 400],
    ['a chunk that is none', view('z\r\n', [JSON_TYPE, mine, 'transfer-encoding: chunked']), 400],
    ['no host', raw('GET /healthz HTTP/1.1', 'connection: close'), 400],
    ['a version of the future', raw('GET /healthz HTTP/9.9', 'host: a'), 400],
    ['HTTP/2', raw('PRI * HTTP/2.0', '', 'SM'), 400],
    ['a method in small letters', raw('get /healthz HTTP/1.1', 'host: a'), 400],
    ['a method that there is not', wire({ method: 'BREW', path: '/views' }), 400],
    ['a method for something else', wire({ method: 'PUT', path: '/views', headers: [mine] }), 405],
    ['TRACE', wire({ method: 'TRACE', path: '/me', headers: [mine] }), 405],
    [
      'a method in a header',
      wire({ path: '/me/sessions', headers: ['x-http-method-override: DELETE'] }),
      401,
    ],
    ['a path that there is not', get('/admin', mine), 404],
    ['an expectation that nobody has heard of', get('/admin', 'expect: magic'), 404],
  ]

  function endAll(...headers: string[]) {
    return bytesOf({ method: 'DELETE', path: '/me/sessions', headers })
  }
}

/** Two requests on one connection, which the first leaves open. */
const pipelined = (first: Buffer, second: Buffer) =>
  Buffer.concat([Buffer.from(first.toString().replace('connection: close\r\n', '')), second])

/**
 * The same bytes in other letters: base64 has two bits to spare in the last letter of 43.
 */
function respelled(token: string): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const last = letters.indexOf(token.at(-1) ?? '')
  return `${token.slice(0, -1)}${letters[last + 1]}`
}
