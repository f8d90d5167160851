import { stringifySetCookie } from 'cookie'
import { checkOptionNames, type NamesOf } from '../option-names.ts'
import { SessionRequestError } from './errors.ts'

/** Options of the cookie that holds the token. It is always `HttpOnly` and lives as long as the token. */
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
  /** Default `/`. */
  path?: string | undefined
  /** Default: none. The browser then sends the cookie only to the host that set it. */
  domain?: string | undefined
}

const optionNames: NamesOf<CookieOptions> = {
  secure: true,
  name: true,
  sameSite: true,
  path: true,
  domain: true,
}

const COOKIE_LIFETIME =
  'the cookie lives as long as the token: set tokens.lifetimeSeconds (idleSeconds ends an unused session)'

/** Cookie options of other packages, and what to use instead. */
const instead = {
  maxAge: COOKIE_LIFETIME,
  expires: COOKIE_LIFETIME,
  httpOnly: 'the cookie is always HttpOnly',
  signed: 'the token is always signed, with tokens.secrets',
}

const SAME_SITE = ['lax', 'strict', 'none']

/** The name of the cookie that these options result in. */
export function cookieName({ secure = true, name, path = '/', domain }: CookieOptions): string {
  if (name !== undefined) return name
  if (!secure) return 'onetrip'
  return path === '/' && !domain ? '__Host-onetrip' : '__Secure-onetrip'
}

/** Reads and writes the cookie. The store verifies the token in it. */
export interface SessionCookie {
  /**
   * The value of the cookie in a `Cookie` header; undefined or empty if there is none.
   *
   * @throws SessionRequestError `ONETRIP_SEVERAL_COOKIES`: an attacker may have set one of them.
   */
  read(header: string | undefined): string | undefined
  /**
   * A `Set-Cookie` header with this token.
   *
   * @param expiresAt Milliseconds since 1970.
   */
  write(token: string, expiresAt: number): string
  /** The `Set-Cookie` header that removes it. */
  readonly cleared: string
}

/** @throws TypeError for options that browsers or HTTP do not allow. */
export function sessionCookie(options: CookieOptions = {}): SessionCookie {
  checkOptionNames('cookie', options, optionNames, instead)
  const { secure = true, sameSite = 'lax', path = '/', domain } = options
  const name = cookieName(options)
  checkOptions({ name, secure, sameSite, path, domain })
  const attributes = { name, path, httpOnly: true, sameSite, secure, ...(domain && { domain }) }

  return {
    cleared: stringifySetCookie({ ...attributes, value: '', maxAge: 0, expires: new Date(0) }),
    write(token, expiresAt) {
      const maxAge = Math.max(0, Math.floor((expiresAt - Date.now()) / 1000))
      const expires = new Date(expiresAt)
      return stringifySetCookie({ ...attributes, value: token, maxAge, expires })
    },
    read: (header) => (header === undefined ? undefined : onlyValue(header, name)),
  }
}

function checkOptions({ name, secure, sameSite, path, domain }: CookieOptions & { name: string }) {
  if (typeof secure !== 'boolean') throw new TypeError('cookie.secure must be true or false')
  if (!SAME_SITE.includes(sameSite ?? '')) {
    throw new TypeError(`cookie.sameSite must be one of ${SAME_SITE.join(', ')}`)
  }
  if (path?.[0] !== '/') throw new TypeError('cookie.path must begin with /')
  if (sameSite === 'none' && !secure) throw new TypeError('cookie.sameSite none needs secure')
  if (/^__(?:host|secure)-/i.test(name) && !secure) {
    throw new TypeError(`a cookie named ${name} needs secure: browsers ignore it otherwise`)
  }
  if (/^__host-/i.test(name) && (path !== '/' || domain)) {
    throw new TypeError(`a cookie named ${name} needs the path / and no domain`)
  }
}

function onlyValue(header: string, name: string): string | undefined {
  let value: string | undefined
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals < 0 || stripped(pair, 0, equals) !== name) continue
    if (value !== undefined) {
      throw new SessionRequestError(
        'ONETRIP_SEVERAL_COOKIES',
        `the request has more than one cookie ${name}`,
      )
    }
    value = stripped(pair, equals + 1, pair.length)
  }
  return value
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
