import { redisUrlOf, secretIn } from '@onetrip/session-store'
import { envSchema } from 'env-schema'
import { Type } from 'typebox'
import { redisLocation, topologyOf } from './redis-location.ts'
import { removedSettings } from './removed-settings.ts'
import { type Config, configSchema } from './settings.ts'
import { trustedProxies } from './trust-proxy.ts'

export type { Config } from './settings.ts'

/**
 * Reads and validates the settings: the environment, and a `.env` file in the current folder if there is one.
 * Reads secret files too: `SESSION_SECRETS` gets the content of `SESSION_SECRETS_FILE`, and `REDIS_URL` the password
 * of `REDIS_PASSWORD_FILE`.
 *
 * @throws Error that names the invalid setting.
 */
export function loadConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const config = validated(environment)
  trustedProxies(config.TRUST_PROXY)
  const SESSION_SECRETS = sessionSecrets(config)
  if (!SESSION_SECRETS.split(',').every((secret) => /^\S{32,}$/.test(secret))) {
    throw new Error(
      'SESSION_SECRETS (or SESSION_SECRETS_FILE): each secret must have at least 32 characters, without white space; separate secrets by commas only; openssl rand -base64 32 makes one',
    )
  }
  const complete = { ...config, SESSION_SECRETS, REDIS_URL: redisUrlOf(config) }
  redisLocation(complete)
  checkEffects(complete)
  return complete
}

/** @throws Error if a setting differs from its default but has no effect, because of another one. */
function checkEffects(config: Config): void {
  const topology = topologyOf(config.REDIS_URL)
  const reasons: { [Name in keyof Config]?: string | false } = {
    REUSE_PORT: config.PORT === 0 && 'with PORT=0: each process gets another port',
    STRATEGY:
      (topology === 'sentinel' && 'with sentinels, which need batch') ||
      (topology === 'cluster' &&
        config.STRATEGY !== 'naive' &&
        'on a cluster, which needs batch or naive'),
    REDIS_POOL_SIZE: topology === 'cluster' && 'on a cluster: it has one connection to each node',
    DURABLE_ENDS:
      (topology === 'cluster' && 'on a cluster') ||
      (config.STRATEGY !== 'batch' && 'with another STRATEGY than batch'),
    REDIS_PARTITIONS: topology !== 'cluster' && 'without a cluster',
    REDIS_SENTINEL_PASSWORD_FILE: topology !== 'sentinel' && 'without a URL of sentinels',
    MAX_SESSIONS: config.JANITOR_INTERVAL_SECONDS === 0 && 'with JANITOR_INTERVAL_SECONDS=0',
    OTEL_TRACES_SAMPLER_ARG:
      config.OTEL_EXPORTER_OTLP_ENDPOINT === '' && 'without OTEL_EXPORTER_OTLP_ENDPOINT',
  }
  for (const [name, reason] of Object.entries(reasons) as [keyof Config, string | false][]) {
    const { default: unset } = configSchema.properties[name] as { default?: unknown }
    if (reason && config[name] !== unset) throw new Error(`${name} has no effect ${reason}`)
  }
}

/** Includes the removed settings, because only env-schema knows what `.env` contains. */
const schema = {
  ...configSchema,
  properties: {
    ...configSchema.properties,
    ...Object.fromEntries(
      Object.keys(removedSettings).map((name) => [name, Type.String({ maxLength: 0 })]),
    ),
  },
}

function validated(environment: NodeJS.ProcessEnv): Config {
  try {
    return envSchema<Config>({
      schema,
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
  const instead = removedSettings[name]
  if (instead !== undefined) return `${name} is no longer a setting: ${instead}`
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
