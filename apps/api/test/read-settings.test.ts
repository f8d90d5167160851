import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { loadConfig } from '../src/read-settings.ts'
import { redisLocation } from '../src/redis-location.ts'
import { removedSettings } from '../src/removed-settings.ts'
import { configSchema } from '../src/settings.ts'

const SESSION_SECRETS = 'x'.repeat(32)

test('.env.example lists exactly the settings, with their defaults', () => {
  const example = readFileSync(new URL('../.env.example', import.meta.url), 'utf8')
  const lines = example.split('\n').filter((line) => /^[A-Z]/.test(line))
  const settings = Object.entries(configSchema.properties).map(
    ([name, schema]) => `${name}=${'default' in schema ? schema.default : ''}`,
  )
  expect(lines).toEqual(settings)
})

test.each([
  [{ SESSION_SECRETS: '' }, 'SESSION_SECRETS'],
  [{ SESSION_SECRETS: `${SESSION_SECRETS},short` }, 'SESSION_SECRETS'],
  [{ SESSION_SECRETS: `${SESSION_SECRETS}, ${SESSION_SECRETS}` }, 'SESSION_SECRETS'],
  [{ SESSION_SECRETS_FILE: '/nowhere/secret' }, 'SESSION_SECRETS_FILE'],
  [{ SESSION_SECRETS: '', SESSION_SECRETS_FILE: '/nowhere' }, 'SESSION_SECRETS_FILE .* ENOENT'],
  [{ PORT: '3000x', MAX_SESSIONS: '0' }, 'PORT .*MAX_SESSIONS'],
  [{ STRATEGY: 'fast' }, 'STRATEGY must be one of naive, '],
  [
    { STRATEGY: 'pipeline', REDIS_URL: 'redis+cluster://a:1' },
    'STRATEGY has no effect on a cluster, which needs batch or naive',
  ],
  [
    { STRATEGY: 'naive', REDIS_URL: 'redis+sentinel://a:1/primary' },
    'STRATEGY has no effect with sentinels, which need batch',
  ],
  [{ REUSE_PORT: 'true', PORT: '0' }, 'REUSE_PORT has no effect with PORT=0'],
  [{ REUSE_PORT: 'yes' }, 'REUSE_PORT must be boolean'],
  [{ TRUST_PROXY: 'true' }, 'TRUST_PROXY'],
  [{ TRUST_PROXY: '10.0.0.0/33' }, 'TRUST_PROXY'],
  [{ TRUST_PROXY: '10' }, 'TRUST_PROXY'],
  [{ TRUST_PROXY: '127.0.0.1,,::1' }, 'TRUST_PROXY'],
  [{ PUBLIC_ORIGINS: 'https://shop.example/' }, 'PUBLIC_ORIGINS'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4318' }, 'OTEL_EXPORTER_OTLP_ENDPOINT'],
  [{ OTEL_TRACES_SAMPLER_ARG: '0.1' }, 'OTEL_TRACES_SAMPLER_ARG has no effect'],
  [{ OTEL_TRACES_SAMPLER: 'always_on' }, 'OTEL_TRACES_SAMPLER is no longer .*_SAMPLER_ARG'],
  [{ SHUTDOWN_GRACE_MS: '5000' }, 'SHUTDOWN_GRACE_MS is no longer .*ten seconds'],
  [{ REDIS_URL: 'redis://127.0.0.1/abc' }, 'REDIS_URL: .*database'],
  [{ REDIS_PASSWORD_FILE: '/nowhere' }, 'REDIS_PASSWORD_FILE cannot be read'],
  [{ REDIS_URL: 'redis+cluster://a:1,b:x' }, 'REDIS_URL: .*node 2'],
  [{ REDIS_URL: 'redis+cluster://a:1/m' }, 'REDIS_URL'],
  [{ REDIS_URL: 'redis+cluster://p@ss@a:1' }, 'REDIS_URL'],
  [{ REDIS_URL: 'redis+cluster://a:1', REDIS_TLS_SERVER_NAME: 'a' }, 'REDIS_URL and REDIS_TLS_'],
  [{ REDIS_URL: 'redis+cluster://a:1', REDIS_POOL_SIZE: '2' }, 'REDIS_POOL_SIZE'],
  [{ REDIS_URL: 'redis+sentinel://a:1' }, 'REDIS_URL: .*name of the primary'],
  [{ REDIS_URL: 'redis://a', REDIS_TLS_SERVER_NAME: 'a' }, 'REDIS_URL and REDIS_TLS_'],
  [{ REDIS_TLS_CA_FILE: '/nowhere/ca' }, 'REDIS_TLS_CA_FILE cannot be read'],
  [{ HOST: '' }, 'HOST'],
  [{ REDIS_SENTINEL_USERNAME: 'u' }, 'REDIS_SENTINEL_USERNAME is no longer .*sentinelUser=user'],
  [{ REDIS_SENTINEL_PASSWORD_FILE: 'p' }, 'REDIS_SENTINEL_PASSWORD_FILE has no effect'],
  [{ REDIS_PARTITIONS: '32' }, 'REDIS_PARTITIONS has no effect'],
  [{ DURABLE_ENDS: 'yes' }, 'DURABLE_ENDS must be one of no, disk, replicas'],
  [{ DURABLE_ENDS: 'disk', STRATEGY: 'naive' }, 'DURABLE_ENDS has no effect with another STRATEGY'],
  [{ DURABLE_ENDS: 'disk', REDIS_URL: 'redis+cluster://a:1' }, 'DURABLE_ENDS .* on a cluster'],
  [{ MAX_SESSIONS: '5', JANITOR_INTERVAL_SECONDS: '0' }, 'MAX_SESSIONS has no effect'],
])('%j is rejected: %s', (environment, words) => {
  expect(() => loadConfig({ SESSION_SECRETS, ...environment })).toThrow(new RegExp(words))
})

function fileForThisTest(content: string, name = 'secret'): string {
  const folder = mkdtempSync(join(tmpdir(), 'onetrip-config-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

test('secrets are read from files, and the final newline is removed', () => {
  const config = loadConfig({
    SESSION_SECRETS_FILE: fileForThisTest(`${SESSION_SECRETS}\n`),
    REDIS_URL: 'redis://api@redis:6379',
    REDIS_PASSWORD_FILE: fileForThisTest('p@ss/word\n'),
  })
  expect(config.SESSION_SECRETS).toBe(SESSION_SECRETS)
  expect(config.REDIS_URL).toBe('redis://api:p%40ss%2Fword@redis:6379')
})

test('URLs of one Redis, of a cluster and of sentinels', () => {
  const REDIS_PASSWORD_FILE = fileForThisTest('p@ss word\n')
  const located = (settings: Record<string, string>) =>
    redisLocation(loadConfig({ SESSION_SECRETS, ...settings }))
  const cluster = { nodes: ['a:1', '[::1]:2'], username: 'api', password: 'p@ss word' }
  const REDIS_URL = 'rediss+cluster://api@a:1,[::1]:2'
  expect(located({ REDIS_URL, REDIS_PASSWORD_FILE })).toEqual({
    cluster: { ...cluster, tls: true },
  })
  expect(located({ REDIS_URL: 'redis+cluster://api:p%40ss%20word@a:1,[::1]:2' })).toEqual({
    cluster: { ...cluster, tls: false },
  })
  expect(located({ REDIS_URL: 'redis+cluster://a:1' })).toEqual({
    cluster: { nodes: ['a:1'], tls: false },
  })
  const sentinels = {
    REDIS_URL: 'rediss+sentinel://api@a,b:2/m?sentinelUser=s%40',
    REDIS_PASSWORD_FILE,
    REDIS_TLS_SERVER_NAME: 'redis.test',
    REDIS_SENTINEL_PASSWORD_FILE: fileForThisTest('t'),
  }
  expect(located(sentinels)).toEqual({
    sentinel: {
      nodes: ['a', 'b:2'],
      name: 'm',
      username: 'api',
      password: 'p@ss word',
      tls: { servername: 'redis.test' },
      sentinelUsername: 's@',
      sentinelPassword: 't',
    },
  })
  expect(located({})).toEqual({ redis: { host: '127.0.0.1', port: 6390 } })
  expect(located({ REDIS_URL: 'rediss://a/2', REDIS_TLS_SERVER_NAME: 'b' })).toMatchObject({
    redis: { host: 'a', db: 2, tls: { servername: 'b' } },
  })
})

test('a removed setting in .env is rejected', () => {
  vi.spyOn(process, 'cwd').mockReturnValue(dirname(fileForThisTest('AUTH=password', '.env')))
  onTestFinished(() => void vi.restoreAllMocks())
  expect(() => loadConfig({ SESSION_SECRETS })).toThrow('AUTH is no longer a setting')
})

test.for(Object.entries(removedSettings))('%s is removed: %s', ([name, wayOut]) => {
  const environment = { SESSION_SECRETS, [name]: '1' }
  expect(() => loadConfig(environment)).toThrow(`${name} is no longer a setting: ${wayOut}`)
})

test.for([
  ['REDIS_PASSWORD_FILE', '\n', /^REDIS_PASSWORD_FILE .* is empty$/],
  ['SESSION_SECRETS_FILE', 'short-secret', /^(?!.*short-secret).*SESSION_SECRETS/],
] as const)(
  '%s with a bad secret is rejected, and the secret is not shown',
  ([name, content, message]) => {
    const own =
      name === 'SESSION_SECRETS_FILE' ? {} : { SESSION_SECRETS, REDIS_URL: 'redis://api@a' }
    expect(() => loadConfig({ ...own, [name]: fileForThisTest(content) })).toThrow(message)
  },
)
