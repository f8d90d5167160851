import { strategyNames } from '@onetrip/session-store'
import { type Static, Type } from 'typebox'
import { saleMethodNames } from './shop/sale-methods.ts'

export const DEFAULT_CACHE_ENTRIES = 10_000
export const DEFAULT_PARTITIONS = 64
export const DEFAULT_REDIS_URL = 'redis://127.0.0.1:6390'

/** Every setting of the API, from the environment. `.env.example` lists the same, by test. */
export const configSchema = Type.Object({
  NODE_ENV: Type.String({
    default: 'development',
    description: 'Anything else makes cookies Secure; AUTH=trust refuses production',
  }),
  AUTH: Type.String({
    default: 'trust',
    enum: ['trust', 'password'],
    description: 'trust: the demo, which believes every name; password: the users of USERS_FILE',
  }),
  USERS_FILE: Type.String({
    default: '',
    description: 'File of users and password hashes; npm run set-password writes it',
  }),
  HOST: Type.String({ default: '127.0.0.1', description: 'Address to listen on' }),
  PORT: Type.Integer({
    default: 3000,
    minimum: 0,
    maximum: 65535,
    description: '0 picks a free port',
  }),
  WORKERS: Type.String({
    default: '1',
    pattern: '^(auto|[1-9][0-9]?)$',
    description: 'Processes on the one port, 1 to 99; auto: as many as fit the machine',
  }),
  STRATEGY: Type.String({
    default: 'batch',
    enum: [...strategyNames],
    description: 'How updates are sent',
  }),
  REDIS_URL: Type.String({
    default: DEFAULT_REDIS_URL,
    description:
      'redis://host:port/database, rediss:// for TLS, or unix:///path/to/socket?db=database',
  }),
  REDIS_CLUSTER: Type.String({
    default: '',
    description:
      'In place of REDIS_URL: some nodes of a Redis Cluster, as host:port,host:port; the API finds the others',
  }),
  REDIS_PARTITIONS: Type.Integer({
    default: DEFAULT_PARTITIONS,
    minimum: 1,
    maximum: 16384,
    description:
      'With REDIS_CLUSTER or REDIS_MIGRATE_TO: partitions of sessions and counts; the same in every process, for as long as the data lives',
  }),
  REDIS_SENTINELS: Type.String({
    default: '',
    description: 'In place of REDIS_URL: the sentinels of Redis Sentinel, as host:port,host:port',
  }),
  REDIS_SENTINEL_NAME: Type.String({
    default: '',
    description: 'With REDIS_SENTINELS: the name of the master, as in "sentinel monitor"',
  }),
  REDIS_SENTINEL_USERNAME: Type.String({
    default: '',
    description: 'With REDIS_SENTINELS: user of the sentinels, if they have users',
  }),
  REDIS_SENTINEL_PASSWORD_FILE: Type.String({
    default: '',
    description: 'With REDIS_SENTINELS: file with the password for the sentinels, if they have one',
  }),
  REDIS_USERNAME: Type.String({
    default: '',
    description: 'With REDIS_CLUSTER or REDIS_SENTINELS: user of Redis; REDIS_URL has its own',
  }),
  REDIS_PASSWORD_FILE: Type.String({
    default: '',
    description: 'File with the password of Redis; REDIS_URL then has none',
  }),
  REDIS_TLS: Type.Boolean({
    default: false,
    description:
      'With REDIS_CLUSTER or REDIS_SENTINELS: connect by TLS; for REDIS_URL use rediss://',
  }),
  REDIS_TLS_CA_FILE: Type.String({
    default: '',
    description:
      'With TLS: file with the certificate authorities to trust, in PEM format; default: those of Node',
  }),
  REDIS_TLS_CERT_FILE: Type.String({
    default: '',
    description: 'With TLS: file with the certificate of this client, in PEM format',
  }),
  REDIS_TLS_KEY_FILE: Type.String({
    default: '',
    description: 'File with its key, in PEM format',
  }),
  REDIS_TLS_SERVER_NAME: Type.String({
    default: '',
    description:
      "With TLS: name in the servers' certificates, and for SNI; default: the host of each server",
  }),
  REDIS_MIGRATE_TO: Type.String({
    default: '',
    description:
      'While sessions move from REDIS_URL to a Redis Cluster (docs/scaling-migration.md): some of its nodes, as host:port,host:port, with the user, password and TLS of REDIS_URL; or the URL of a single Redis that gets partitioned keys',
  }),
  REDIS_MIGRATE_HOME: Type.String({
    default: '',
    pattern: '^(source|target)?$',
    description:
      'With REDIS_MIGRATE_TO: source or target, where sessions begin; with target, those of REDIS_URL move when they are used',
  }),
  REDIS_POOL_SIZE: Type.Integer({
    default: 1,
    minimum: 1,
    maximum: 64,
    description: 'Connections that the process shares; of a cluster: to each node',
  }),
  REDIS_DEADLINE_MS: Type.Integer({
    default: 2000,
    minimum: 10,
    maximum: 60000,
    description: 'How long one update may take',
  }),
  STARTUP_DEADLINE_MS: Type.Integer({
    default: 10000,
    minimum: 100,
    maximum: 600000,
    description: 'How long to wait for Redis at the start',
  }),
  SHUTDOWN_GRACE_MS: Type.Integer({
    default: 10000,
    minimum: 100,
    maximum: 600000,
    description: 'How long requests in flight may still take during shutdown',
  }),
  SHUTDOWN_DRAIN_MS: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 600000,
    description:
      'How long /readyz says no before the port is closed: longer than a load balancer takes to notice',
  }),
  MAX_CONNECTIONS: Type.Integer({
    default: 10000,
    minimum: 1,
    description: 'Open connections of clients in one process, beyond which a new one is closed',
  }),
  MAX_EVENT_LOOP_DELAY_MS: Type.Integer({
    default: 3000,
    minimum: 0,
    maximum: 60000,
    description: 'How late the process may be before it refuses what has piled up; 0: never',
  }),
  LOGIN_LIMIT_PER_USER: Type.Integer({
    default: 20,
    minimum: 0,
    description: 'Attempts to log in as one user in a window, over all processes; 0: any number',
  }),
  LOGIN_LIMIT_PER_ADDRESS: Type.Integer({
    default: 500,
    minimum: 0,
    description: 'The same from one address (IPv6: one /64 network); 0: any number',
  }),
  LOGIN_LIMIT_WINDOW_SECONDS: Type.Integer({
    default: 300,
    minimum: 1,
    maximum: 86400,
    description: 'The window of those two; who is over one has to wait for the next',
  }),
  TRUST_PROXY: Type.String({
    default: '',
    description:
      'Whose X-Forwarded-For is believed: networks, comma separated, as 10.0.0.0/8; or, where none but proxies can connect, a number of them',
  }),
  SESSION_SECRETS: Type.String({
    default: '',
    description: 'Secrets of at least 32 characters, comma separated: the first signs, all verify',
  }),
  SESSION_SECRETS_FILE: Type.String({
    default: '',
    description: 'File with the SESSION_SECRETS, which are then not set themselves',
  }),
  SESSION_LIFETIME_SECONDS: Type.Integer({
    default: 2592000,
    minimum: 60,
    description: 'How long a token is good for, however much it is used',
  }),
  SESSION_REMEMBERED_SECONDS: Type.Integer({
    default: 7776000,
    minimum: 60,
    description: 'The same for a login with remember: true, if it is longer',
  }),
  SESSION_IDLE_SECONDS: Type.Integer({
    default: 1209600,
    minimum: 60,
    description: 'A session that was not seen for so long ends',
  }),
  MAX_SESSIONS: Type.Integer({
    default: 10000000,
    minimum: 1,
    description: 'Sessions beyond it end, those seen longest ago first',
  }),
  MAX_SESSIONS_PER_USER: Type.Integer({
    default: 100,
    minimum: 1,
    description: 'A login beyond it ends the oldest sessions of the user, at most 100 at a time',
  }),
  JANITOR_INTERVAL_SECONDS: Type.Integer({
    default: 60,
    minimum: 0,
    maximum: 86400,
    description:
      'Janitor interval in seconds. Until its next run, a view refreshes an idle session. 0: no janitor in this process',
  }),
  REDIS_INFO_INTERVAL_SECONDS: Type.Integer({
    default: 15,
    minimum: 0,
    maximum: 3600,
    description: 'How often Redis is asked for INFO, for /metrics; 0: never',
  }),
  SHOP_SELLERS: Type.String({
    default: '',
    description:
      'With AUTH=password: users, comma separated, who may put items on sale; with AUTH=trust everybody may',
  }),
  SALE_METHOD: Type.String({
    default: 'script',
    enum: [...saleMethodNames],
    description:
      'How the flash sale sells a piece; all but script are for comparison, and naive oversells',
  }),
  RISK_FEATURES: Type.Boolean({
    default: false,
    description: 'Record logins and their networks (hashed) for GET /me/risk',
  }),
  RISK_CACHE_ENTRIES: Type.Integer({
    default: DEFAULT_CACHE_ENTRIES,
    minimum: 0,
    description:
      'With RISK_FEATURES: users whose features each process caches; 0: none. The naive strategies and a cluster have no cache',
  }),
  PUBLIC_ORIGINS: Type.String({
    default: '',
    pattern: '^(https?://[^/,\\s]+(,https?://[^/,\\s]+)*)?$',
    description:
      'Origins, comma separated, whose pages may change state by cookie, as https://shop.example; for a proxy that changes Host',
  }),
  REPORT_FILE: Type.String({
    default: '',
    description: 'The page that /report serves: what npm run load made; none if empty',
  }),
  DEMO_SOCKET: Type.String({
    default: '',
    description:
      'Unix socket of the demo service, which runs the race; npm start sets it; refused in production',
  }),
  DOCS: Type.Boolean({ default: true, description: 'Serve /openapi.json and /docs' }),
  PAGE: Type.Boolean({
    default: true,
    description:
      'Serve the demo page at / and /demo; false leaves / to the routes of an application',
  }),
  LOG_LEVEL: Type.String({
    default: 'info',
    enum: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    description: 'The least that is logged',
  }),
  LOG_REQUESTS: Type.Boolean({ default: false, description: 'A line for each request' }),
  OTEL_EXPORTER_OTLP_ENDPOINT: Type.String({
    default: '',
    pattern: '^(https?://[^\\s]+)?$',
    description:
      'Export traces to this OpenTelemetry collector, as http://localhost:4318; none if empty',
  }),
  OTEL_EXPORTER_OTLP_PROTOCOL: Type.String({
    default: 'http/protobuf',
    enum: ['http/protobuf'],
    description: 'How traces are exported',
  }),
  OTEL_SERVICE_NAME: Type.String({
    default: 'onetrip-api',
    description: 'Name of the service in traces',
  }),
  OTEL_TRACES_SAMPLER: Type.String({
    default: 'parentbased_always_on',
    enum: [
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ],
    description: 'Which requests are traced; parentbased: as the traceparent of the request says',
  }),
  OTEL_TRACES_SAMPLER_ARG: Type.Number({
    default: 1,
    minimum: 0,
    maximum: 1,
    description: 'Share of the requests that traceidratio and parentbased_traceidratio trace',
  }),
})

export type Config = Static<typeof configSchema>
