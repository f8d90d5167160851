/**
 * Options of earlier versions, and what replaces them. An option that is still set throws with this text, so that
 * nothing is lost in silence. To be removed with version 0.3.
 */
export const removedOptions: Readonly<Record<string, string>> = {
  cachedChecks: 'each check asks Redis, in a round trip that it shares with concurrent calls',
  client:
    'the store opens its own connections: set redis to the options of the client; a client of node-redis is a sender (nodeRedisSender)',
  dataLimits:
    'its limits are constants: 64 fields of a session, 16,384 bytes of a field; keep larger data in keys of your own (run)',
  idleSeconds: 'set idleSeconds of the store',
  lockSeconds: 'other processes wait 30 s after a working janitor has died',
  onProgress: "subscribe to the diagnostics channel 'onetrip:retention' (retentionChannel)",
  strategy:
    'use sender; apps/api/src/strategies has naive, sequential and pipeline, and batch is what the store does by itself',
  tls: 'set redis to options of ioredis, which have tls: { ...parseRedisUrl(url, tls).options }',
  url: 'it is now redis, with the same URL',
}

/** @deprecated It is a class now. To be removed with version 0.3. */
export function createSessionStore(): never {
  throw new TypeError(
    'createSessionStore(options) is now new SessionStore(options), and its option url is redis',
  )
}
