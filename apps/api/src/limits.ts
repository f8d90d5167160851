/** Limits per client; times in milliseconds. In parentheses: the status of the response above the limit. */
export interface Limits {
  /** Maximum request body (413). */
  bodyBytes: number
  /**
   * Maximum body of `PATCH /me/data` (413). Twice the `patchBytes` of the store: leaves room for quotes,
   * spaces and escapes in a patch that the store accepts.
   */
  dataBodyBytes: number
  /** Maximum request line and headers together (431). Half of Node's default; enough for a few cookies. */
  headerBytes: number
  /** Maximum length of a path parameter (414). A session id is shorter. */
  parameterCharacters: number
  /** Timeout for the request head, from the opening of the connection or the first byte (408). */
  headersMs: number
  /** Timeout for receiving the whole request (408). The store's deadline limits the processing. */
  requestMs: number
  /** Interval of the checks of those two timeouts. */
  checkEveryMs: number
  /**
   * Keep-alive timeout of an idle connection. Longer than that of a proxy (usually 60 s): otherwise the proxy
   * may send a request while the API closes the connection.
   */
  keepAliveMs: number
  /** Keep-alive timeout during shutdown: enough for a request that is on its way. */
  leaveMs: number
  /**
   * A connection on which no bytes were received or sent for this time is closed, for example because the client does
   * not read its responses. Longer than any request takes.
   */
  stalledMs: number
  /** Time for requests in flight and their responses during shutdown; then all connections are closed. */
  finishMs: number
  /** Maximum open connections in this process; a new one above it is closed at once. */
  connections: number
}

/** Not limited: requests per connection, and the number of headers. */
export const defaultLimits: Limits = {
  bodyBytes: 4096,
  dataBodyBytes: 131_072,
  headerBytes: 8192,
  parameterCharacters: 100,
  headersMs: 5_000,
  requestMs: 10_000,
  checkEveryMs: 1_000,
  keepAliveMs: 72_000,
  leaveMs: 250,
  stalledMs: 120_000,
  finishMs: 8_000,
  connections: 10_000,
}

/** Converts the limits to options of Fastify and Node. */
export function serverOptions(limits: Limits) {
  return {
    bodyLimit: limits.bodyBytes,
    requestTimeout: limits.requestMs,
    connectionTimeout: limits.stalledMs,
    keepAliveTimeout: limits.keepAliveMs,
    routerOptions: { maxParamLength: limits.parameterCharacters },
    http: {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      joinDuplicateHeaders: true, // by default Node ignores all but the first
    },
  }
}
