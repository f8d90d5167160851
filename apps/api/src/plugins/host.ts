import fp from 'fastify-plugin'
import { ApiError } from '../errors.ts'

/** `uri-host [":" port]` of RFC 9110, 7.2, without a comma, which would separate several hosts. */
const HOST = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+;=%-]*)(?::\d{0,5})?$/i

/**
 * Rejects a request with several `Host` headers, an invalid one, or (in HTTP/1.1) none, as RFC 9112, 3.2
 * requires. Otherwise a proxy and the API could use different hosts.
 *
 * Needs `joinDuplicateHeaders` (`limits.ts`), which joins two headers with a comma.
 */
export const hostPlugin = fp(
  async (app) => {
    const missing = new ApiError('API_BAD_REQUEST', 'the Host header is missing')
    const invalid = new ApiError('API_BAD_REQUEST', 'the Host header is invalid or repeated')
    app.addHook('onRequest', ({ raw: { headers, httpVersion } }, _reply, done) => {
      const { host } = headers
      if (host === undefined) done(httpVersion === '1.0' ? undefined : missing)
      else done(HOST.test(host) ? undefined : invalid)
    })
  },
  { name: 'host', dependencies: ['errors'] },
)
