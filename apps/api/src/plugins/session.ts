import cookie from '@fastify/cookie'
import { StoreError } from '@onetrip/session-store'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

const COOKIE = 'onetrip'
const BEARER = 'Bearer '

declare module 'fastify' {
  interface FastifyInstance {
    /** The signed token that the request carries. Throws `StoreError` when it carries none. */
    tokenOf(request: FastifyRequest): string
    setTokenCookie(reply: FastifyReply, token: string, expires: Date): void
    clearTokenCookie(reply: FastifyReply): void
  }
}

/** Where a request carries its token: in `Authorization: Bearer`, or else in a cookie. */
export const sessionPlugin = fp<{ secureCookie: boolean }>(
  async (app, { secureCookie }) => {
    // Cookies are parsed where they are needed, not on every request.
    await app.register(cookie, { hook: false })
    const attributes = { httpOnly: true, sameSite: 'lax', path: '/', secure: secureCookie } as const

    app.decorate('tokenOf', (request) => {
      const { authorization, cookie: cookies } = request.headers
      if (authorization?.startsWith(BEARER)) return authorization.slice(BEARER.length)
      const token = cookies && app.parseCookie(cookies)[COOKIE]
      if (token) return token
      throw new StoreError('ONETRIP_INVALID_TOKEN', 'this needs a token: log in first')
    })
    app.decorate('setTokenCookie', (reply, token, expires) => {
      reply.setCookie(COOKIE, token, { ...attributes, expires })
    })
    app.decorate('clearTokenCookie', (reply) => {
      reply.clearCookie(COOKIE, attributes)
    })
  },
  { name: 'session' },
)
