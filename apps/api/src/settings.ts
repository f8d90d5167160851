import { type Static, Type } from 'typebox'
import { strategyNames } from './strategies/index.ts'

/** All settings of the API, read from the environment. A test keeps `.env.example` in step. */
export const configSchema = Type.Object({
  NODE_ENV: Type.String({
    default: '',
    description:
      'development: the session cookie also works without HTTPS; with any other value it is Secure. production: needs an authenticator (apps/api/README.md). Empty: development, with a warning at the start',
  }),
  HOST: Type.String({ default: '127.0.0.1', minLength: 1, description: 'Address to listen on' }),
  PORT: Type.Integer({
    default: 3000,
    minimum: 0,
    maximum: 65535,
    description: 'Port to listen on; 0: any free port',
  }),
  REUSE_PORT: Type.Boolean({
    default: false,
    description:
      'Several processes may listen on PORT, each with REUSE_PORT=true; the system spreads connections over them. Not on macOS and Windows',
  }),
  STRATEGY: Type.String({
    default: 'batch',
    enum: [...strategyNames],
    description:
      'How store operations are sent to Redis. naive, sequential and pipeline are for comparison, with one Redis server',
  }),
  REDIS_URL: Type.String({
    default: 'redis://127.0.0.1:6390',
    description:
      'redis://user@host:port/database, or unix:///path/to/socket?db=database. Redis Cluster: redis+cluster://user@host:port,host:port with some of the nodes. Sentinel: redis+sentinel://user@host:port,host:port/name with the sentinels and the name of the primary; ?sentinelUser= names a user of the sentinels. With TLS: rediss',
  }),
  REDIS_PARTITIONS: Type.Integer({
    default: 64,
    minimum: 1,
    maximum: 16384,
    description:
      'With a cluster: number of key partitions. Must be the same in every process and never change while data exists',
  }),
  REDIS_SENTINEL_PASSWORD_FILE: Type.String({
    default: '',
    description: 'With Sentinel: file with the password for the sentinels',
  }),
  REDIS_PASSWORD_FILE: Type.String({
    default: '',
    description: 'File with the Redis password, instead of a password in REDIS_URL',
  }),
  REDIS_TLS_CA_FILE: Type.String({
    default: '',
    description: 'With TLS: file of trusted certificate authorities (PEM). Default: those of Node',
  }),
  REDIS_TLS_CERT_FILE: Type.String({
    default: '',
    description: 'With TLS: file with the client certificate (PEM)',
  }),
  REDIS_TLS_KEY_FILE: Type.String({
    default: '',
    description: 'With TLS: file with the private key of the client certificate (PEM)',
  }),
  REDIS_TLS_SERVER_NAME: Type.String({
    default: '',
    description:
      'With TLS: expected name in the server certificates, also sent as SNI. Default: the host of each server',
  }),
  REDIS_POOL_SIZE: Type.Integer({
    default: 1,
    minimum: 1,
    maximum: 64,
    description: 'Shared Redis connections per process. A cluster always has one to each node',
  }),
  REDIS_DEADLINE_MS: Type.Integer({
    default: 2000,
    minimum: 10,
    maximum: 60000,
    description: 'Timeout of one store operation in milliseconds',
  }),
  SHUTDOWN_DRAIN_MS: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 600000,
    description:
      'How long /readyz returns 503 before the port closes, in milliseconds. Choose more than your load balancer needs to notice. Requests in flight then have another ten seconds',
  }),
  MAX_EVENT_LOOP_DELAY_MS: Type.Integer({
    default: 3000,
    minimum: 0,
    maximum: 60000,
    description:
      'Event loop delay in milliseconds above which waiting requests are rejected (503); 0: no limit',
  }),
  LOGIN_LIMIT_PER_USER: Type.Integer({
    default: 20,
    minimum: 0,
    description:
      'Login attempts per user in five minutes, across all processes; above it, logins are rejected until they are over; 0: no limit',
  }),
  LOGIN_LIMIT_PER_ADDRESS: Type.Integer({
    default: 500,
    minimum: 0,
    description:
      'Login attempts and guest sessions per client address (IPv6: per /64 network) in five minutes, across all processes; 0: no limit',
  }),
  TRUST_PROXY: Type.String({
    default: '',
    description:
      'Proxies whose X-Forwarded-For is trusted: comma-separated networks such as 10.0.0.0/8, or their number (1 to 9) if clients can connect only through them',
  }),
  SESSION_SECRETS: Type.String({
    default: '',
    description:
      'Comma-separated secrets of at least 32 characters each, without white space. The first signs tokens, all verify them',
  }),
  SESSION_SECRETS_FILE: Type.String({
    default: '',
    description: 'File with the session secrets, instead of SESSION_SECRETS',
  }),
  SESSION_LIFETIME_SECONDS: Type.Integer({
    default: 2592000,
    minimum: 60,
    description: 'Maximum lifetime of a token, also of one in use',
  }),
  SESSION_RENEW_SECONDS: Type.Integer({
    default: 0,
    minimum: 0,
    description:
      'A session in use gets a new token in its cookie when its token is older, so that it lives on; 0: never. Set it only when all processes know it',
  }),
  SESSION_REMEMBERED_SECONDS: Type.Integer({
    default: 7776000,
    minimum: 60,
    description:
      'Maximum lifetime of a token after a login with remember: true, if longer than SESSION_LIFETIME_SECONDS',
  }),
  SESSION_IDLE_SECONDS: Type.Integer({
    default: 1209600,
    minimum: 60,
    description: 'Idle timeout: a session not used for this long ends',
  }),
  MAX_SESSIONS: Type.Integer({
    default: 10000000,
    minimum: 1,
    description: 'Maximum number of sessions; above it, the least recently used ones end',
  }),
  MAX_SESSIONS_PER_USER: Type.Integer({
    default: 100,
    minimum: 1,
    description:
      'Maximum number of sessions per user; a login above it ends the oldest ones, at most 100 at a time',
  }),
  DURABLE_ENDS: Type.String({
    default: 'no',
    enum: ['no', 'disk', 'replicas'],
    description:
      'What a request that ends sessions waits for: the disk of Redis (with everysec up to two seconds), or at least one replica',
  }),
  JANITOR_INTERVAL_SECONDS: Type.Integer({
    default: 60,
    minimum: 0,
    maximum: 86400,
    description:
      'Janitor interval in seconds. Until its next run, a view refreshes an idle session. 0: another process runs the janitor of this data',
  }),
  PUBLIC_ORIGINS: Type.String({
    default: '',
    pattern: '^(https?://[^/,\\s]+(,https?://[^/,\\s]+)*)?$',
    description:
      'Comma-separated origins such as https://shop.example whose pages may send state-changing requests with the cookie. Needed behind a proxy that changes Host',
  }),
  DOCS: Type.Boolean({ default: true, description: 'Serve /openapi.json and /docs' }),
  LOG_LEVEL: Type.String({
    default: 'info',
    enum: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    description: 'Minimum level of logged messages. debug: also a line for each request',
  }),
  OTEL_EXPORTER_OTLP_ENDPOINT: Type.String({
    default: '',
    pattern: '^(https?://[^\\s]+)?$',
    description:
      'URL of the OpenTelemetry collector that receives traces, such as http://localhost:4318; empty: no tracing',
  }),
  OTEL_TRACES_SAMPLER_ARG: Type.Number({
    default: 1,
    minimum: 0,
    maximum: 1,
    description:
      'Share of requests that are traced, unless their traceparent header decides (sampler parentbased_traceidratio)',
  }),
})

export type Config = Static<typeof configSchema>
