import { envSchema } from 'env-schema'
import { type Config, configSchema } from './config-schema.ts'
import { migrationTarget, redisLocation, urlsWithPassword } from './redis-location.ts'
import { secretIn } from './secret-file.ts'
import { trustedProxies } from './trust-proxy.ts'

export type { Config } from './config-schema.ts'

/**
 * Reads and validates the settings: the environment, and a `.env` file in the current folder if there is one.
 * Reads secret files too: `SESSION_SECRETS` gets the content of `SESSION_SECRETS_FILE`, and `REDIS_URL` the password
 * of `REDIS_PASSWORD_FILE`.
 *
 * @throws Error that names the invalid setting.
 */
export function loadConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  for (const [name, instead] of Object.entries(removed)) {
    if (environment[name]) throw new Error(`${name} is no longer a setting: ${instead}`)
  }
  const config = validated(environment)
  trustedProxies(config.TRUST_PROXY)
  if (config.OTEL_TRACES_SAMPLER_ARG !== 1 && !config.OTEL_TRACES_SAMPLER.endsWith('ratio')) {
    throw new Error(
      'OTEL_TRACES_SAMPLER_ARG has no effect unless OTEL_TRACES_SAMPLER is traceidratio or parentbased_traceidratio',
    )
  }
  const SESSION_SECRETS = sessionSecrets(config)
  if (!SESSION_SECRETS.split(',').every((secret) => /^\S{32,}$/.test(secret))) {
    throw new Error(
      'SESSION_SECRETS (or SESSION_SECRETS_FILE): each secret must have at least 32 characters, without white space; separate secrets by commas only; openssl rand -base64 32 makes one',
    )
  }
  const complete = { ...config, SESSION_SECRETS, ...urlsWithPassword(config) }
  redisLocation(complete)
  migrationTarget(complete)
  return complete
}

/** Settings of earlier versions, without which the API would accept any user, or use another Redis. */
const removed = {
  AUTH: 'pass an authenticator to serve() (apps/api/README.md); without one, every user name is accepted',
  REDIS_CLUSTER: 'use REDIS_URL=redis+cluster://user@host:port,host:port',
  REDIS_SENTINELS: 'use REDIS_URL=redis+sentinel://user@host:port,host:port/name',
}

function validated(environment: NodeJS.ProcessEnv): Config {
  try {
    return envSchema<Config>({
      schema: configSchema,
      data: environment,
      env: false, // env-schema would add process.env
      dotenv: true,
    })
  } catch (error) {
    const { errors } = error as { errors?: readonly ValidationError[] }
    throw errors ? new Error(errors.map(messageOf).join('; ')) : error
  }
}

/** The part of an Ajv error that is used here. */
interface ValidationError {
  instancePath: string
  keyword: string
  params: { allowedValues?: readonly string[] }
  message?: string
}

/** Does not quote the value, which may be a secret. */
function messageOf({ instancePath, keyword, params, message }: ValidationError): string {
  const name = instancePath.slice(1) as keyof Config
  if (params.allowedValues) return `${name} must be one of ${params.allowedValues.join(', ')}`
  if (keyword !== 'pattern') return `${name} ${message}`
  const { description } = configSchema.properties[name] as { description?: string }
  return `${name} is malformed. Expected: ${description}`
}

function sessionSecrets({ SESSION_SECRETS, SESSION_SECRETS_FILE }: Config): string {
  if (SESSION_SECRETS_FILE === '') return SESSION_SECRETS
  if (SESSION_SECRETS !== '') {
    throw new Error('SESSION_SECRETS and SESSION_SECRETS_FILE are both set; unset one')
  }
  return secretIn('SESSION_SECRETS_FILE', SESSION_SECRETS_FILE)
}
