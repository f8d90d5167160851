interface Cookie {
  readonly name: string
  readonly value: string
  readonly domain: string
  readonly hostOnly: boolean
  readonly path: string
}

const domainMatches = (host: string, domain: string) =>
  host === domain || host.endsWith(`.${domain}`)

const pathMatches = (path: string, prefix: string) =>
  path === prefix || path.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`)

/** Whether a browser takes a cookie with this name: RFC 6265bis, 4.1.3. */
function obeysPrefix(name: string, { secure, path, hostOnly }: Record<string, unknown>): boolean {
  if (/^__host-/i.test(name)) return secure === true && path === '/' && hostOnly === true
  return !/^__secure-/i.test(name) || secure === true
}

/**
 * The cookies of a browser, as in RFC 6265, 5.3 and 5.4, for HTTPS.
 *
 * @param options `hostOnlyKey`: whether a cookie of a host and one of the domain with the same name are two
 *   cookies. They are in Chromium and Firefox (RFC 6265bis), but not in RFC 6265.
 */
export function cookieJar({ hostOnlyKey = true } = {}) {
  const cookies = new Map<string, Cookie>()

  function set(header: string, host: string): void {
    const [pair = '', ...rest] = header.split(';').map((part) => part.trim())
    const [name = '', value = ''] = pair.split('=')
    const attributes = new Map(
      rest.map((part) => {
        const [key = '', text = ''] = part.split('=')
        return [key.toLowerCase(), text]
      }),
    )
    const given = attributes.get('domain')?.replace(/^\./, '').toLowerCase()
    if (given !== undefined && !domainMatches(host, given)) return
    const { domain, hostOnly } = { domain: given ?? host, hostOnly: given === undefined }
    const path = attributes.get('path') ?? '/'
    if (!obeysPrefix(name, { secure: attributes.has('secure'), path, hostOnly })) return
    const key = JSON.stringify([name, domain, path, hostOnlyKey && hostOnly])
    cookies.delete(key)
    if (attributes.get('max-age') !== '0') {
      cookies.set(key, { name, value, domain, hostOnly, path })
    }
  }

  return {
    /** Stores and removes cookies as the `Set-Cookie` headers of a response from this host say. */
    store(headers: readonly string[], host: string): void {
      for (const header of headers) set(header, host)
    },
    /** The `Cookie` header for a URL: longer paths first. */
    headerFor(url: string): string {
      const { hostname, pathname } = new URL(url)
      return [...cookies.values()]
        .filter(({ domain, hostOnly, path }) => {
          const isForHost = hostOnly ? hostname === domain : domainMatches(hostname, domain)
          return isForHost && pathMatches(pathname, path)
        })
        .sort((a, b) => b.path.length - a.path.length)
        .map(({ name, value }) => `${name}=${value}`)
        .join('; ')
    },
  }
}
