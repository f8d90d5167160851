/** What one client may take of the process; times in milliseconds. */
export interface Limits {
  /** Of a body. 413. */
  bodyBytes: number
  /**
   * Of the body of `PATCH /me/data`: twice the `patchBytes` of the store, so that every patch that it accepts
   * fits, with quotes, spaces and escapes. 413.
   */
  dataBodyBytes: number
  /** Of the request line and all headers together: half of Node's own, and room for a few cookies. 431. */
  headerBytes: number
  /** Of a parameter in the path; an id of a session has fewer. 414. */
  parameterCharacters: number
  /** For the head of a request, counted from the opening of the connection or from its first byte. 408. */
  headersMs: number
  /** For a request with its body; how long it may take to be answered is the store's deadline. 408. */
  requestMs: number
  /** How late those two may be noticed. */
  checkEveryMs: number
  /**
   * For a connection between two requests. Longer than a proxy keeps one (60 s is usual), which would
   * lose a request that it sends while this side closes.
   */
  keepAliveMs: number
  /** The same once the process is about to stop: enough for a request that is on its way. */
  leaveMs: number
  /** Requests in flight on one connection, beyond which the next are rejected. 429. */
  pipelinedRequests: number
  /** In which a client must read more of its responses; a stalled one is closed within twice this time. */
  stalledMs: number
  /** For clients to read the last responses during shutdown, before their connections are closed. */
  flushMs: number
  /** Open at the same time in this process, beyond which a new one is closed at once. */
  connections: number
}

/** Not limited: requests over the life of a connection (closing it would only cost), and the number of headers. */
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
  pipelinedRequests: 100,
  stalledMs: 30_000,
  flushMs: 2_000,
  connections: 10_000,
}

/** The limits that Fastify and Node take as options. */
export function serverOptions(limits: Limits) {
  return {
    bodyLimit: limits.bodyBytes,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    routerOptions: { maxParamLength: limits.parameterCharacters },
    http: {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      requireHostHeader: false, // plugins/host.ts does, and answers as for any other error
      joinDuplicateHeaders: true, // Node ignores all but the first otherwise
    },
  }
}
