import { bytesOf } from './wire.ts'

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

/**
 * Each request must get one response with this status, and change nothing. More JSON bodies and query strings come
 * from the fuzz test of apps/demo.
 */
export function hostileRequests(tokens: Tokens): Hostile[] {
  const bearer = (token: string) => `authorization: Bearer ${token}`
  const cookie = (token: string) => `cookie: __Host-onetrip=${token}`
  const mine = bearer(tokens.genuine)
  const [id = '', signature = ''] = tokens.genuine.split('.')
  const [otherId = '', otherSignature = ''] = tokens.other.split('.')

  const send = (method: string, path: string, ...headers: string[]) =>
    bytesOf({ method, path, headers })
  const get = (path: string, ...headers: string[]) => send('GET', path, ...headers)
  const post = (path: string, body: string | Buffer, ...headers: string[]) =>
    bytesOf({ method: 'POST', path, headers, body })
  const view = (body: string | Buffer, ...headers: string[]) =>
    post('/views', body, mine, JSON_TYPE, ...headers)
  const typed = (type: string) => post('/views', '{"item":"a"}', mine, `content-type: ${type}`)
  const viewWith = (...headers: string[]) => post('/views', '{"item":"a"}', JSON_TYPE, ...headers)
  const login = (body: string | Buffer, ...headers: string[]) =>
    post('/login', body, JSON_TYPE, ...headers)
  const popular = (query: string) => get(`/items/popular?${query}`)
  const end = (session: string) => send('DELETE', `/me/sessions/${session}`, mine)
  const endAll = (...headers: string[]) => send('DELETE', '/me/sessions', ...headers)
  const health = (...headers: string[]) => get('/healthz', ...headers)
  const raw = (...lines: string[]) => Buffer.from(`${lines.join('\r\n')}\r\n\r\n`)

  return [
    // Malformed JSON, wrong types.
    ['an empty body', view(''), 400],
    ['an unterminated string', view('{"item":"a'), 400],
    ['two documents', view('{"item":"a"}{"item":"b"}'), 400],
    ['null instead of an object', view('null'), 400],
    ['an array instead of an object', view('[{"item":"a"}]'), 400],
    ['a number instead of a string', view('{"item":1}'), 400],
    ['an object instead of a string', view('{"item":{"$ne":""}}'), 400],
    ['an extra property', view('{"item":"a","count":-1000}'), 400],
    ['an extra property of a login', login('{"user":"eve","admin":true}'), 400],
    ['2,000 arrays', view('['.repeat(2_000) + ']'.repeat(2_000)), 400],
    ['400 objects', view(`${'{"item":'.repeat(400)}1${'}'.repeat(400)}`), 400],
    ['two limits', popular('limit=1&limit=2'), 400],
    ['a limit of 20 digits', popular('limit=99999999999999999999'), 400],
    ['a limit with a fraction', popular('limit=1.5'), 400],

    // Prototype keys.
    ['__proto__', view('{"item":"a","__proto__":{"user":"root"}}'), 400],
    ['constructor', view('{"item":"a","constructor":{"prototype":{"user":"root"}}}'), 400],
    ['__proto__ in a query', popular('__proto__[limit]=1'), 400],
    ['__proto__ as session id', end('__proto__'), 400],

    // Wrong content type.
    ['no content type', post('/views', '{"item":"a"}', mine), 415],
    ['text', typed('text/plain'), 415],
    ['a form', typed('application/x-www-form-urlencoded'), 415],
    ['almost JSON', typed('application/jsonp'), 415],

    // Oversized.
    ['a body of 5,000 bytes', view(JSON.stringify({ item: 'x'.repeat(5_000) })), 413],
    ['a content-length of a terabyte', view('{"item":"a"}', 'content-length: 1099511627776'), 413],
    [
      'chunks of 5,000 bytes',
      view(`1388\r\n${' '.repeat(5_000)}\r\n0\r\n\r\n`, 'transfer-encoding: chunked'),
      413,
    ],
    ['a header of 20 kB', get('/me', `x-filler: ${'x'.repeat(20_000)}`), 431],
    ['a path of 20 kB', get(`/${'x'.repeat(20_000)}`), 431],
    ['a session id of 1,000 characters', end('x'.repeat(1_000)), 414],
    ['a token of 4,000 characters', viewWith(bearer('x'.repeat(4_000))), 401],

    // Control and bidirectional characters, invalid UTF-8, null bytes.
    ['a null character', view('{"item":"a\\u0000b"}'), 400],
    ['an escape', view('{"item":"\\u001b[2J"}'), 400],
    ['right to left', view('{"item":"\\u202egnp.exe"}'), 400],
    ['an isolate', view('{"item":"a\\u2066b"}'), 400],
    ['a lone surrogate', view('{"item":"\\ud83e"}'), 400],
    ['a user name with an override', login('{"user":"\\u202eeve"}'), 400],
    ['a truncated UTF-8 character', view(Buffer.from('{"item":"\xc3"}', 'latin1')), 400],
    ['a user name with invalid UTF-8', login(Buffer.from('{"user":"eve\xfe"}', 'latin1')), 400],
    ['UTF-16', view(Buffer.from('{"item":"a"}', 'utf16le')), 400],
    ['a null byte in a header', viewWith(bearer('a\0b')), 400],
    ['a null byte in a path', get('/items/popular\0'), 400],
    ['an escaped null byte in a path', end('%00'), 400],
    ['a truncated escape', end('%e0%a4%a'), 400],
    ['a path traversal', get('/me/../../etc/passwd', mine), 404],
    ['an escaped path traversal', end('..%2f..%2frecent%3a'), 400],

    // Tokens.
    ['no token', viewWith(), 401],
    ['an empty token', viewWith(bearer('')), 401],
    ['a token with another scheme', viewWith(`authorization: Basic ${tokens.genuine}`), 401],
    ['an id without a signature', viewWith(bearer(id)), 401],
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
    ['the token of an ended session, DELETE /me/sessions', endAll(bearer(tokens.gone)), 401],
    ['a forged token in a cookie', viewWith(cookie(`${id}.${'A'.repeat(43)}`)), 401],
    ['a cookie without the prefix', viewWith(`cookie: onetrip=${tokens.genuine}`), 401],
    ['a token in a query', get(`/me?token=${tokens.genuine}`), 401],
    ["the id of somebody else's session", end(otherId), 404],
    ['two tokens', viewWith(bearer(tokens.foreign), mine), 401],
    ['two tokens, the valid one first', viewWith(mine, bearer(tokens.foreign)), 401],
    ['two cookies', viewWith(`${cookie(tokens.foreign)}; __Host-onetrip=${tokens.genuine}`), 400],

    // Cross-site requests.
    ['a cookie from another origin', viewWith(cookie(tokens.genuine), 'origin: http://b'), 403],
    ['a cookie from an opaque origin', viewWith(cookie(tokens.genuine), 'origin: null'), 403],
    ['a login from another origin', login('{"user":"eve"}', 'origin: http://b'), 403],
    [
      'a logout from another host of the site',
      endAll(cookie(tokens.genuine), 'sec-fetch-site: same-site'),
      403,
    ],

    ['two hosts', viewWith(cookie(tokens.genuine), 'origin: http://a', 'host: a', 'host: b'), 403],

    // Invalid HTTP, and unusual HTTP.
    ['no host', raw('GET /healthz HTTP/1.1', 'connection: close'), 400],
    ['two lengths', view('{"item":"a"}', 'content-length: 12', 'content-length: 0'), 400],
    [
      'content-length and transfer-encoding',
      view('0\r\n\r\n', 'content-length: 5', 'transfer-encoding: chunked'),
      400,
    ],
    ['a Redis command', raw('*1', '$8', 'FLUSHALL'), 400],
    ['garbage after a request', pipelined(health(), raw('%&/()=?')), 200],
    ['a malformed header', raw('GET /healthz HTTP/1.1', 'host: a', 'no colon'), 400],
    ['an unknown method', send('BREW', '/views'), 400],
    ['a method that is not allowed', send('PUT', '/views', mine), 404],
    ['TRACE', send('TRACE', '/me', mine), 404],
    ['a method override header', get('/me/sessions', 'x-http-method-override: DELETE'), 401],
    ['an unknown path', get('/admin', mine), 404],
    ['an unknown Expect header', get('/admin', 'expect: magic'), 404],
  ]
}

/** Two requests on one connection; the first keeps it open. */
const pipelined = (first: Buffer, second: Buffer) =>
  Buffer.concat([Buffer.from(first.toString().replace('connection: close\r\n', '')), second])

/** The same bytes in non-canonical base64: the last of 43 characters has two unused bits. */
function respelled(token: string): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const last = letters.indexOf(token.at(-1) ?? '')
  return `${token.slice(0, -1)}${letters[last + 1]}`
}
