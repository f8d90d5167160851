import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import { redisAddress } from '@onetrip/session-store'
import { envSchema } from 'env-schema'
import {
  type Config,
  configSchema,
  DEFAULT_CACHE_ENTRIES,
  DEFAULT_PARTITIONS,
} from './config-schema.ts'
import { trustedProxies } from './trust-proxy.ts'

export type { Config } from './config-schema.ts'

/**
 * Reads and validates the environment (and a `.env` file in the current folder, if there is one).
 * What `REDIS_PASSWORD_FILE` and `SESSION_SECRETS_FILE` name is read, and is then in `REDIS_URL` and
 * `SESSION_SECRETS`.
 *
 * @throws Error that names the variable.
 */
export function loadConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const config = validated(environment)
  trustedProxies(config.TRUST_PROXY)
  if (config.AUTH === 'password' && config.USERS_FILE === '') {
    throw new Error('AUTH=password needs a USERS_FILE')
  }
  if (config.AUTH !== 'password' && config.USERS_FILE !== '') {
    throw new Error('USERS_FILE is set, but AUTH is not password')
  }
  if (config.NODE_ENV === 'production' && config.DEMO_SOCKET !== '') {
    throw new Error(
      'DEMO_SOCKET is set, but there is no race in production (NODE_ENV); remove DEMO_SOCKET',
    )
  }
  if (config.OTEL_TRACES_SAMPLER_ARG !== 1 && !config.OTEL_TRACES_SAMPLER.endsWith('ratio')) {
    throw new Error(
      'OTEL_TRACES_SAMPLER_ARG is set, but OTEL_TRACES_SAMPLER is not traceidratio or parentbased_traceidratio',
    )
  }
  if (config.SHOP_SELLERS !== '' && config.AUTH !== 'password') {
    throw new Error('SHOP_SELLERS is set, but AUTH is not password')
  }
  if (!config.RISK_FEATURES && config.RISK_CACHE_ENTRIES !== DEFAULT_CACHE_ENTRIES) {
    throw new Error('RISK_CACHE_ENTRIES is set, but RISK_FEATURES is not true')
  }
  if ((config.REDIS_MIGRATE_TO === '') !== (config.REDIS_MIGRATE_HOME === '')) {
    throw new Error('REDIS_MIGRATE_TO and REDIS_MIGRATE_HOME need each other: set both or neither')
  }
  if (config.REDIS_MIGRATE_TO === '' && config.REDIS_PARTITIONS !== DEFAULT_PARTITIONS) {
    throw new Error('REDIS_PARTITIONS is set, but REDIS_MIGRATE_TO is not')
  }
  if (
    config.REDIS_MIGRATE_TO !== '' &&
    !['batch', 'pipeline', 'sequential'].includes(config.STRATEGY)
  ) {
    throw new Error(
      `STRATEGY=${config.STRATEGY} cannot be used with REDIS_MIGRATE_TO; use batch, pipeline or sequential`,
    )
  }
  if (config.SALE_METHOD === 'naive' && config.NODE_ENV === 'production') {
    throw new Error('SALE_METHOD=naive oversells, so it does not run with NODE_ENV=production')
  }
  const SESSION_SECRETS = sessionSecrets(config)
  if (SESSION_SECRETS.split(',').some(({ length }) => length < 32)) {
    throw new Error(
      'SESSION_SECRETS (or SESSION_SECRETS_FILE) must have at least 32 characters in each secret',
    )
  }
  return { ...config, SESSION_SECRETS, REDIS_URL: checkedRedisUrl(config) }
}

function validated(environment: NodeJS.ProcessEnv): Config {
  try {
    return envSchema<Config>({
      schema: configSchema,
      data: environment,
      env: false, // or process.env would count, too
      dotenv: true,
    })
  } catch (error) {
    const { errors } = error as { errors?: readonly ValidationError[] }
    throw errors ? new Error(errors.map(whatIsWrong).join('; ')) : error
  }
}

/** What Ajv says of a value, as far as it is used here. */
interface ValidationError {
  instancePath: string
  keyword: string
  params: { allowedValues?: readonly string[] }
  message?: string
}

/** In words for whoever sets it. The value is left out: it may be a secret. */
function whatIsWrong({ instancePath, keyword, params, message }: ValidationError): string {
  const name = instancePath.slice(1) as keyof Config
  if (params.allowedValues) return `${name} must be one of ${params.allowedValues.join(', ')}`
  if (keyword !== 'pattern') return `${name} ${message}`
  const { description } = configSchema.properties[name] as { description?: string }
  return `${name} is not in its form: ${description}`
}

function sessionSecrets({ SESSION_SECRETS, SESSION_SECRETS_FILE }: Config): string {
  if (SESSION_SECRETS_FILE === '') return SESSION_SECRETS
  if (SESSION_SECRETS !== '') {
    throw new Error('SESSION_SECRETS and SESSION_SECRETS_FILE are both set: only one can be used')
  }
  return secretIn('SESSION_SECRETS_FILE', SESSION_SECRETS_FILE)
}

function checkedRedisUrl(config: Config): string {
  const url = redisUrl(config)
  const tls = redisTls(config)
  try {
    redisAddress(url, tls)
  } catch (error) {
    const names = tls ? 'REDIS_URL and REDIS_TLS_…' : 'REDIS_URL'
    throw new Error(`${names}: ${(error as Error).message}`)
  }
  return url
}

/**
 * The options of TLS that the settings name; undefined where they name none.
 *
 * @throws Error when a file cannot be read.
 */
export function redisTls(config: Config): ConnectionOptions | undefined {
  const files = {
    ca: 'REDIS_TLS_CA_FILE',
    cert: 'REDIS_TLS_CERT_FILE',
    key: 'REDIS_TLS_KEY_FILE',
  } as const
  const tls: ConnectionOptions = {}
  for (const [name, variable] of Object.entries(files)) {
    const path = config[variable]
    if (path !== '') Object.assign(tls, { [name]: secretIn(variable, path) })
  }
  if (config.REDIS_TLS_SERVER_NAME !== '') tls.servername = config.REDIS_TLS_SERVER_NAME
  return Object.keys(tls).length > 0 ? tls : undefined
}

function redisUrl({ REDIS_URL, REDIS_PASSWORD_FILE }: Config): string {
  if (REDIS_PASSWORD_FILE === '') return REDIS_URL
  const url = URL.parse(REDIS_URL)
  if (!url?.host || url.password) {
    throw new Error(
      'REDIS_URL must name a host and have no password when REDIS_PASSWORD_FILE is set: redis://user@host:6379 or unix://user@localhost/path/to/socket',
    )
  }
  url.password = encodeURIComponent(secretIn('REDIS_PASSWORD_FILE', REDIS_PASSWORD_FILE))
  return url.href
}

function secretIn(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    // Node's message names the path and what is wrong with it.
    throw new Error(`${variable} cannot be read: ${(error as Error).message}`)
  }
}
