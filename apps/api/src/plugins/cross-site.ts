import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../errors.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * For requests that a browser may send with a cookie and without the user's intention. Reading is
     * never refused: what is answered, the page of another origin cannot see.
     *
     * @throws ApiError `API_CROSS_SITE`.
     */
    refuseCrossSite(request: FastifyRequest): void
  }
}

/**
 * Refuses requests that a page of another origin made a browser send, by what the browser says of them.
 * The order of the questions is that of https://words.filippo.io/csrf/ (Go's CrossOriginProtection).
 */
export const crossSitePlugin = fp<{ publicOrigins: readonly string[] }>(
  async (app, { publicOrigins }) => {
    // As browsers write them: in small letters, without the port that goes without saying.
    const trusted = new Set(publicOrigins.map((origin) => new URL(origin).origin))
    app.decorate('refuseCrossSite', ({ method, headers }) => {
      if (method === 'GET' || method === 'HEAD') return
      const { origin, host } = headers
      if (origin !== undefined && trusted.has(origin)) return
      const site = headers['sec-fetch-site']
      if (site === undefined) {
        // No browser of today; or, over plain HTTP to another host than localhost, one that says less.
        if (origin === undefined || (host !== undefined && hostOf(origin) === host)) return
      } else if (site === 'same-origin' || site === 'none') return
      throw new ApiError('API_CROSS_SITE')
    })
  },
  { name: 'cross-site' },
)

const hostOf = (origin: string): string | undefined => URL.parse(origin)?.host
