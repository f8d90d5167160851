import { stringifySetCookie } from 'cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../errors.ts'

declare module 'fastify' {
  interface FastifyInstance {
    tokens: TokenCarriers
  }
}

/** How a token travels: in `Authorization: Bearer`, or in a cookie. */
interface TokenCarriers {
  /** The token of `Authorization: Bearer`, if there is one. It is not verified: the store does that. */
  fromHeader(request: FastifyRequest): string | undefined
  /**
   * The token of the cookie, if there is one; not verified either.
   *
   * @throws ApiError when there is more than one cookie of this name.
   */
  fromCookie(request: FastifyRequest): string | undefined
  /** @param expiresAt Unix milliseconds. */
  setCookie(reply: FastifyReply, token: string, expiresAt: number): void
  clearCookie(reply: FastifyReply): void
}

/**
 * A browser sends a cookie with the prefix `__Host-` back only to the host that set it, and takes it
 * only over HTTPS: no other host of the same domain can plant one.
 * https://www.rfc-editor.org/rfc/rfc6265bis.html#name-the-__host-prefix
 */
export const cookieName = (secure: boolean) => (secure ? '__Host-onetrip' : 'onetrip')

const BEARER = /^bearer +/i

/** Reads tokens from requests and writes them to replies; who may do what is not asked here. */
export const sessionPlugin = fp<{ secureCookie: boolean }>(
  async (app, { secureCookie }) => {
    const name = cookieName(secureCookie)
    const attributes = {
      name,
      path: '/',
      httpOnly: true,
      sameSite: 'lax',
      secure: secureCookie,
    } as const
    const cleared = stringifySetCookie({
      ...attributes,
      value: '',
      maxAge: 0,
      expires: new Date(0),
    })

    app.decorate('tokens', {
      fromHeader({ headers: { authorization } }) {
        if (authorization === undefined) return undefined
        const scheme = BEARER.exec(authorization)
        return scheme ? authorization.slice(scheme[0].length) : undefined
      },
      fromCookie: ({ headers: { cookie } }) =>
        cookie === undefined ? undefined : onlyCookie(cookie, name),
      // Not @fastify/cookie: its hook runs before every answer, and two answers have a cookie.
      setCookie(reply, token, expiresAt) {
        const maxAge = Math.max(0, Math.floor((expiresAt - Date.now()) / 1000))
        const expires = new Date(expiresAt)
        const cookie = stringifySetCookie({ ...attributes, value: token, maxAge, expires })
        reply.header('set-cookie', cookie)
      },
      clearCookie(reply) {
        reply.header('set-cookie', cleared)
      },
    })
  },
  { name: 'session' },
)

/** The value of this cookie. Two of the name are refused: one may have been planted. */
function onlyCookie(header: string, name: string): string | undefined {
  let value: string | undefined
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals < 0 || pair.slice(0, equals).trim() !== name) continue
    if (value !== undefined) {
      throw new ApiError('API_BAD_REQUEST', `there is more than one cookie ${name}`)
    }
    value = pair.slice(equals + 1).trim()
  }
  return value
}
