import { stringifySetCookie } from 'cookie'
import { checkedOptions } from '../input.ts'
import { isRemembered } from '../tokens/tokens.ts'

/** Options of the cookie that holds the token. It is always `HttpOnly`. */
export interface CookieOptions {
  /** Send the cookie over HTTPS only. Default true; set false only for development over plain HTTP. */
  secure?: boolean | undefined
  /**
   * Default `__Host-onetrip`: browsers accept this name only over HTTPS and only from the host itself, so that
   * no other host of the domain can set the cookie. `__Secure-onetrip` if you set `path` or `domain`,
   * `onetrip` if `secure` is false.
   */
  name?: string | undefined
  /** Default `lax`. Use `none` if pages of other sites embed yours; it needs `secure`. */
  sameSite?: 'lax' | 'strict' | 'none' | undefined
  /**
   * `browser`: the cookie ends when the browser closes, except after `login(user, { remember: true })`. Default `token`:
   * it lives as long as the token.
   */
  lifetime?: 'token' | 'browser' | undefined
  /** Default `/`. */
  path?: string | undefined
  /** Default: none. The browser then sends the cookie only to the host that set it. */
  domain?: string | undefined
  /**
   * Former values of `domain` and `path`, if you have changed them and kept the name. Browsers may still have
   * cookies from there: they are removed by a login, a logout, and the response to a request with two cookies.
   * Keep them for as long as such a cookie lives. Default: none.
   */
  previous?: readonly CookiePlace[] | undefined
}

/** Where a browser keeps a cookie. Defaults: no domain, the path `/`. */
export type CookiePlace = Pick<CookieOptions, 'domain' | 'path'>

const PLACE = { domain: undefined, path: '/' }
const DEFAULTS = {
  ...PLACE,
  secure: true,
  name: undefined,
  sameSite: 'lax',
  lifetime: 'token',
  previous: [],
}

const placeKinds = { domain: 'string', path: 'string' } as const
const kinds = {
  ...placeKinds,
  secure: 'boolean',
  name: 'string',
  sameSite: ['lax', 'strict', 'none'],
  lifetime: ['token', 'browser'],
} as const

const COOKIE_LIFETIME =
  "the cookie lives as long as the token: set tokens.lifetimeSeconds (idleSeconds ends an unused session), or lifetime: 'browser'"

/** Cookie options of other packages, and what to use instead. */
const instead = {
  maxAge: COOKIE_LIFETIME,
  expires: COOKIE_LIFETIME,
  httpOnly: 'the cookie is always HttpOnly',
  signed: 'the token is always signed, with tokens.secrets',
}

/** The name of the cookie that these options result in. */
export function cookieName({ secure = true, name, path = '/', domain }: CookieOptions): string {
  if (name !== undefined) return name
  if (!secure) return 'onetrip'
  return path === '/' && !domain ? '__Host-onetrip' : '__Secure-onetrip'
}

/** Reads and writes the cookie. The store verifies the token in it. */
export interface SessionCookie {
  /**
   * The values of all cookies with this name in a `Cookie` header, in their order. Usually one; it may be empty.
   */
  read(header: string | undefined): string[]
  /**
   * A `Set-Cookie` header with this token.
   *
   * @param expiresAt Milliseconds since 1970.
   */
  write(token: string, expiresAt: number): string
  /** The `Set-Cookie` headers that remove it from each place where it may be. */
  readonly cleared: readonly string[]
  /** The same without the place of `write`. Send them before the header of `write`, which they may also match. */
  readonly clearedElsewhere: readonly string[]
}

/** @throws TypeError for options that browsers or HTTP do not allow. */
export function sessionCookie(options: CookieOptions = {}): SessionCookie {
  const checked = checkedOptions('cookie', options, DEFAULTS, kinds, instead)
  const { secure, sameSite, path, domain, previous, lifetime } = checked
  const name = cookieName(options)
  if (sameSite === 'none' && !secure) throw new TypeError('cookie.sameSite none needs secure')
  if (/^__(?:host|secure)-/i.test(name) && !secure) {
    throw new TypeError(`a cookie named ${name} needs secure: browsers ignore it otherwise`)
  }
  const attributes = { name, httpOnly: true, sameSite, secure }

  const clearedAt = (what: string, place: CookiePlace): string => {
    checkPlace(what, name, place)
    const expired = { value: '', maxAge: 0, expires: new Date(0) }
    return stringifySetCookie({ ...attributes, ...located(place), ...expired })
  }
  if (!Array.isArray(previous)) {
    throw new TypeError('cookie.previous must be a list of { domain, path }')
  }
  const own = clearedAt('cookie', { domain, path })
  // A cookie without a domain may stem from before `domain` was set.
  const places = isHostPrefixed(name) ? previous : [{}, ...previous]
  const all = new Set([own, ...places.map((place) => clearedAt('cookie.previous', place))])
  const [, ...clearedElsewhere] = all

  return {
    cleared: [...all],
    clearedElsewhere,
    write(token, expiresAt) {
      const own = { ...attributes, ...located({ domain, path }), value: token }
      if (lifetime === 'browser' && !isRemembered(token)) return stringifySetCookie(own)
      const maxAge = Math.max(0, Math.floor((expiresAt - Date.now()) / 1000))
      return stringifySetCookie({ ...own, maxAge, expires: new Date(expiresAt) })
    },
    read: (header) => (header === undefined ? [] : valuesOf(header, name)),
  }
}

const located = ({ domain, path = '/' }: CookiePlace) => ({ path, ...(domain && { domain }) })

const isHostPrefixed = (name: string) => /^__host-/i.test(name)

function checkPlace(what: string, name: string, place: CookiePlace): void {
  const { domain, path } = checkedOptions(what, place, PLACE, placeKinds)
  if (path[0] !== '/') throw new TypeError(`${what}.path must begin with /`)
  if (isHostPrefixed(name) && (path !== '/' || domain)) {
    throw new TypeError(`${what}: a cookie named ${name} needs the path / and no domain`)
  }
}

function valuesOf(header: string, name: string): string[] {
  const values: string[] = []
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals < 0 || stripped(pair, 0, equals) !== name) continue
    values.push(stripped(pair, equals + 1, pair.length))
  }
  return values
}

/**
 * This part of the text without spaces and tabs at its ends, as browsers strip a cookie. `trim` would also remove
 * characters such as 0xA0: `\xA0__Host-sid`, which any host of the domain may set, would become `__Host-sid`.
 */
function stripped(text: string, from: number, to: number): string {
  let [start, end] = [from, to]
  while (start < end && isBlank(text[start])) start++
  while (start < end && isBlank(text[end - 1])) end--
  return text.slice(start, end)
}

const isBlank = (character: string | undefined) => character === ' ' || character === '\t'
