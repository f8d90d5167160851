import type { IncomingHttpHeaders } from 'node:http'

/** What the checks read of a request: Node's, Fastify's and Express's have it. */
export interface WebRequest {
  readonly method?: string | undefined
  readonly headers: IncomingHttpHeaders
}

/**
 * Origins as browsers write them: in lower case, without a default port.
 *
 * @throws TypeError for anything that is not an origin, as one with a path.
 */
export function originsOf(origins: readonly string[]): ReadonlySet<string> {
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
 * Whether a page of another origin made a browser send this request, which changes state. Reading is
 * never refused: the page of another origin cannot see the response.
 *
 * The order of the checks is that of https://words.filippo.io/csrf/ (Go's CrossOriginProtection).
 */
export function isCrossSite({ method, headers }: WebRequest, trusted: ReadonlySet<string>) {
  if (method === 'GET' || method === 'HEAD') return false
  const { origin } = headers
  if (origin !== undefined && trusted.has(origin)) return false
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site !== 'same-origin' && site !== 'none'
  // Not a current browser; or one that sends less over plain HTTP to another host than localhost.
  if (origin === undefined) return false
  const host = headers.host ?? headers[':authority']
  return host === undefined || URL.parse(origin)?.host !== host
}
