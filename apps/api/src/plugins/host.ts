import fp from 'fastify-plugin'
import { ApiError } from '../errors.ts'

/** `uri-host [":" port]` of RFC 9110, 7.2, but without a comma, which separates several hosts. */
const HOST = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+;=%-]*)(?::\d{0,5})?$/i

/**
 * Rejects a request with several `Host` headers, with an invalid one, or, in HTTP/1.1, with none, as RFC
 * 9112, 3.2, demands. Otherwise a proxy and the API could use different ones.
 *
 * Needs `joinDuplicateHeaders` (`limits.ts`): two headers are then a list.
 */
export const hostPlugin = fp(
  async (app) => {
    const none = new ApiError('API_BAD_REQUEST', 'the Host header is missing')
    const invalid = new ApiError('API_BAD_REQUEST', 'there must be one valid Host header')
    app.addHook('onRequest', ({ raw: { headers, httpVersion } }, _reply, done) => {
      const { host } = headers
      if (host === undefined) done(httpVersion === '1.0' ? undefined : none)
      else done(HOST.test(host) ? undefined : invalid)
    })
  },
  { name: 'host', dependencies: ['errors'] },
)
