const ownLogin =
  'pass an authenticator to serve() (apps/api/README.md); without one, every user name is accepted'
const noMigration =
  'docs/cluster.md has other ways from one Redis to a cluster; commit 3a0a3525 is the last one that can move sessions while it serves'
const sentinelUrl = 'use REDIS_URL=redis+sentinel://user@host:port,host:port/name'

/**
 * Settings of earlier versions, and what replaces them. The API does not start while one is set. To be removed with
 * version 0.3.
 */
export const removedSettings: Readonly<Record<string, string>> = {
  AUTH: ownLogin,
  USERS_FILE: ownLogin,
  REDIS_INFO_INTERVAL_SECONDS:
    'the metrics of Redis now come from redis_exporter (docs/operations.md#metrics-of-redis)',
  REDIS_CLUSTER: 'use REDIS_URL=redis+cluster://user@host:port,host:port',
  REDIS_SENTINELS: sentinelUrl,
  REDIS_SENTINEL_NAME: sentinelUrl,
  REDIS_SENTINEL_USERNAME: 'use REDIS_URL=redis+sentinel://…/name?sentinelUser=user',
  REDIS_USERNAME: 'use REDIS_URL=redis://user@host:port',
  REDIS_MIGRATE_TO: noMigration,
  REDIS_MIGRATE_HOME: noMigration,
  WORKERS: 'start several processes with REUSE_PORT=true, or several containers',
  REDIS_TLS: 'use REDIS_URL=rediss://…, rediss+cluster://… or rediss+sentinel://…',
  STARTUP_DEADLINE_MS:
    'remove it: the API waits ten seconds for Redis, and a supervisor starts it again',
  SHUTDOWN_GRACE_MS:
    'remove it: shutdown waits ten seconds for requests in flight, after SHUTDOWN_DRAIN_MS',
  LOGIN_LIMIT_WINDOW_SECONDS:
    'remove it: the window is five minutes; scale LOGIN_LIMIT_PER_USER and LOGIN_LIMIT_PER_ADDRESS',
  LOG_REQUESTS: 'use LOG_LEVEL=debug',
  MAX_CONNECTIONS:
    'remove it: the maximum is 10,000 connections per process; limit clients in the proxy',
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT:
    'use OTEL_EXPORTER_OTLP_ENDPOINT, without /v1/traces: the API exports only traces',
  OTEL_TRACES_SAMPLER:
    'remove it: the sampler is parentbased_traceidratio, and OTEL_TRACES_SAMPLER_ARG its share',
  CACHED_CHECKS:
    'remove it: each check asks Redis, in a round trip that it shares with other requests',
}

/** The same for options of `serve()`, which throws. */
export const removedServeOptions: Readonly<Record<string, string>> = {
  onLogin: 'add a hook in `plugins`, such as onResponse, which sees POST /login with status 200',
}
