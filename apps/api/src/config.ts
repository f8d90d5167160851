import { envSchema } from 'env-schema'
import { type Config, configSchema, DEFAULT_CACHE_ENTRIES } from './config-schema.ts'
import { migrationTarget, redisLocation, urlWithPassword } from './redis-location.ts'
import { secretIn } from './secret-file.ts'
import { trustedProxies } from './trust-proxy.ts'

export type { Config } from './config-schema.ts'

/**
 * Reads and validates the environment (and a `.env` file in the current folder, if there is one).
 * What `SESSION_SECRETS_FILE` names is then in `SESSION_SECRETS`, and the password of
 * `REDIS_PASSWORD_FILE` in `REDIS_URL`, if that names Redis.
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
  if (config.SALE_METHOD === 'naive' && config.NODE_ENV === 'production') {
    throw new Error('SALE_METHOD=naive oversells, so it does not run with NODE_ENV=production')
  }
  const SESSION_SECRETS = sessionSecrets(config)
  if (SESSION_SECRETS.split(',').some(({ length }) => length < 32)) {
    throw new Error(
      'SESSION_SECRETS (or SESSION_SECRETS_FILE) must have at least 32 characters in each secret',
    )
  }
  const complete = { ...config, SESSION_SECRETS, REDIS_URL: urlWithPassword(config) }
  redisLocation(complete)
  migrationTarget(complete)
  return complete
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
