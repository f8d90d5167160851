import type { IncomingHttpHeaders } from 'node:http'

/** The part of a request that the checks read; requests of Node, Fastify and Express have it. */
export interface WebRequest {
  readonly method?: string | undefined
  readonly headers: IncomingHttpHeaders
}

/**
 * Normalizes origins as browsers do: lower case, no default port.
 *
 * @throws TypeError for anything that is not an origin, such as a URL with a path.
 */
export function originsOf(origins: readonly string[]): ReadonlySet<string> {
  if (!Array.isArray(origins) || origins.some((origin) => typeof origin !== 'string')) {
    throw new TypeError('publicOrigins must be a list of origins such as https://shop.example')
  }
  return new Set(
    origins.map((text) => {
      const url = URL.parse(text)
      const isOrigin = url !== null && url.origin !== 'null' && url.href === `${url.origin}/`
      if (isOrigin) return url.origin
      throw new TypeError(`publicOrigins: ${text} is not an origin such as https://shop.example`)
    }),
  )
}

/**
 * Whether a page of another origin made a browser send this state-changing request, or one that opens a WebSocket. Other
 * GET and HEAD requests are allowed: the page cannot read their responses.
 *
 * The order of the checks is that of https://words.filippo.io/csrf/ (Go's CrossOriginProtection).
 */
export function isCrossSite({ method, headers }: WebRequest, trusted: ReadonlySet<string>) {
  const isRead = method === 'GET' || method === 'HEAD'
  if (isRead && headers.upgrade === undefined) return false
  const { origin } = headers
  if (origin !== undefined && trusted.has(origin)) return false
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site !== 'same-origin' && site !== 'none'
  // An old browser, or plain HTTP to a host other than localhost: browsers send no Sec-Fetch-Site there.
  if (origin === undefined) return false
  const host = headers.host ?? headers[':authority']
  return host === undefined || URL.parse(origin)?.host !== host
}
