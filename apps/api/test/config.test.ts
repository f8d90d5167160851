import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { trustingAuthenticator } from '../src/authenticator.ts'
import { loadConfig } from '../src/config.ts'
import { configSchema } from '../src/config-schema.ts'
import { migrationTarget, redisLocation } from '../src/redis-location.ts'

const SESSION_SECRETS = 'x'.repeat(32)

test('.env.example lists exactly the settings, with their defaults', () => {
  const example = readFileSync(new URL('../.env.example', import.meta.url), 'utf8')
  const lines = example.split('\n').filter((line) => /^[A-Z]/.test(line))
  const settings = Object.entries(configSchema.properties).map(
    ([name, schema]) => `${name}=${'default' in schema ? schema.default : ''}`,
  )
  expect(lines).toEqual(settings)
})

test('unset settings get their defaults', () => {
  expect(loadConfig({ SESSION_SECRETS })).toMatchObject({ PORT: 3000, STRATEGY: 'batch' })
})

test.each([
  [{}, 'SESSION_SECRETS'],
  [{ SESSION_SECRETS: 'short' }, 'SESSION_SECRETS'],
  [{ SESSION_SECRETS: `${SESSION_SECRETS},short` }, 'SESSION_SECRETS'],
  [
    { SESSION_SECRETS: `${SESSION_SECRETS}, ${SESSION_SECRETS}` },
    'separate secrets by commas only',
  ],
  [{ SESSION_SECRETS: `${SESSION_SECRETS}\n${SESSION_SECRETS}` }, 'without white space'],
  [{ SESSION_SECRETS, PORT: '99999' }, 'PORT'],
  [{ SESSION_SECRETS, STRATEGY: 'fast' }, 'STRATEGY'],
  [{ SESSION_SECRETS, WORKERS: '0' }, 'WORKERS'],
  [{ SESSION_SECRETS, TRUST_PROXY: 'true' }, 'TRUST_PROXY'],
  [{ SESSION_SECRETS, TRUST_PROXY: '10.0.0.0/33' }, 'TRUST_PROXY'],
  [{ SESSION_SECRETS, TRUST_PROXY: '127.0.0.1,,::1' }, 'TRUST_PROXY'],
  [{ SESSION_SECRETS, WORKERS: 'many' }, 'WORKERS'],
  [{ SESSION_SECRETS, PUBLIC_ORIGINS: 'shop.example' }, 'PUBLIC_ORIGINS'],
  [{ SESSION_SECRETS, PUBLIC_ORIGINS: 'https://shop.example/' }, 'PUBLIC_ORIGINS'],
  [{ SESSION_SECRETS, REDIS_URL: 'http://127.0.0.1' }, 'REDIS_URL'],
  [{ SESSION_SECRETS, REDIS_URL: 'redis://127.0.0.1/abc' }, 'REDIS_URL'],
  [{ SESSION_SECRETS, REDIS_URL: 'unix://relative' }, 'REDIS_URL'],
])('%j is rejected with an error that names %s', (environment, name) => {
  expect(() => loadConfig(environment)).toThrow(name)
})

test.each([
  [{ AUTH: 'password' }, 'AUTH must be one of trust'],
  [{ WORKERS: '0' }, 'WORKERS is malformed. Expected: Number of processes that share the port'],
  [{ STRATEGY: 'fast' }, 'STRATEGY must be one of naive, '],
  [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4318' },
    'OTEL_EXPORTER_OTLP_ENDPOINT is malformed. Expected: URL of the OpenTelemetry collector',
  ],
  [
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    'OTEL_EXPORTER_OTLP_PROTOCOL must be one of http/protobuf',
  ],
  [{ OTEL_TRACES_SAMPLER: 'some' }, 'OTEL_TRACES_SAMPLER must be one of always_on, '],
  [{ OTEL_TRACES_SAMPLER_ARG: '1.5' }, 'OTEL_TRACES_SAMPLER_ARG must be <= 1'],
  [
    { OTEL_TRACES_SAMPLER_ARG: '0.1' },
    'OTEL_TRACES_SAMPLER_ARG has no effect unless OTEL_TRACES_SAMPLER is',
  ],
  [{ PORT: '3000x', MAX_SESSIONS: '0' }, 'PORT must be integer; MAX_SESSIONS must be >= 1'],
  [{ REDIS_CLUSTER: 'a:1', REDIS_URL: 'redis://b' }, 'REDIS_URL and REDIS_CLUSTER are both set'],
  [
    { REDIS_CLUSTER: 'a:1', REDIS_SENTINELS: 'b' },
    'REDIS_CLUSTER and REDIS_SENTINELS are both set',
  ],
  [{ REDIS_CLUSTER: 'a:1,b:x' }, 'REDIS_CLUSTER: cluster: node 2 must look like host:port'],
  [
    { REDIS_CLUSTER: 'a:1', REDIS_USERNAME: 'api' },
    'REDIS_USERNAME has no effect without REDIS_PASSWORD_FILE',
  ],
  [{ REDIS_CLUSTER: 'a:1', REDIS_TLS_SERVER_NAME: 'a' }, 'need REDIS_TLS=true'],
  [{ REDIS_CLUSTER: 'a:1', REDIS_PARTITIONS: '0' }, 'REDIS_PARTITIONS must be >= 1'],
  [{ REDIS_CLUSTER: 'a:1', STRATEGY: 'script' }, 'STRATEGY=script needs all keys on one server'],
  [
    { REDIS_PARTITIONS: '128' },
    'REDIS_PARTITIONS has no effect without REDIS_CLUSTER or REDIS_MIGRATE_TO',
  ],
  [{ REDIS_MIGRATE_TO: 'a:1' }, 'Set both REDIS_MIGRATE_TO and REDIS_MIGRATE_HOME, or neither'],
  [{ REDIS_MIGRATE_HOME: 'source' }, 'Set both REDIS_MIGRATE_TO and REDIS_MIGRATE_HOME'],
  [
    { REDIS_MIGRATE_TO: 'a:1', REDIS_MIGRATE_HOME: 'cluster' },
    'REDIS_MIGRATE_HOME is malformed. Expected: With REDIS_MIGRATE_TO: where new sessions',
  ],
  [
    { REDIS_MIGRATE_TO: 'a:1,', REDIS_MIGRATE_HOME: 'source' },
    'REDIS_MIGRATE_TO: cluster: node 2 must look like host:port',
  ],
  [
    { REDIS_MIGRATE_TO: 'http://a', REDIS_MIGRATE_HOME: 'source' },
    'REDIS_MIGRATE_TO: invalid Redis URL: it must begin with redis://',
  ],
  [
    { REDIS_MIGRATE_TO: 'a:1', REDIS_MIGRATE_HOME: 'source', REDIS_CLUSTER: 'b:1' },
    'REDIS_MIGRATE_TO and REDIS_CLUSTER are both set, but only the single Redis of REDIS_URL',
  ],
  [
    {
      ...{ REDIS_MIGRATE_TO: 'a:1', REDIS_MIGRATE_HOME: 'source' },
      ...{ REDIS_SENTINELS: 'b', REDIS_SENTINEL_NAME: 'm' },
    },
    'REDIS_MIGRATE_TO and REDIS_SENTINELS are both set',
  ],
  [
    { REDIS_MIGRATE_TO: 'a:1', REDIS_MIGRATE_HOME: 'source', STRATEGY: 'script' },
    'STRATEGY=script needs all keys on one server; with REDIS_MIGRATE_TO use batch',
  ],
  [{ REDIS_SENTINELS: 'a:1' }, 'REDIS_SENTINELS needs REDIS_SENTINEL_NAME'],
  [{ REDIS_SENTINEL_NAME: 'm' }, 'REDIS_SENTINEL_NAME has no effect without REDIS_SENTINELS'],
  [{ REDIS_SENTINEL_USERNAME: 'm' }, 'REDIS_SENTINEL_USERNAME has no effect without REDIS_SENT'],
  [
    { REDIS_SENTINELS: 'a', REDIS_SENTINEL_NAME: 'm', REDIS_SENTINEL_USERNAME: 'u' },
    'REDIS_SENTINEL_USERNAME has no effect without REDIS_SENTINEL_PASSWORD_FILE',
  ],
  [{ REDIS_USERNAME: 'api' }, 'REDIS_USERNAME has no effect with REDIS_URL; write redis://user@'],
  [{ REDIS_TLS: 'true' }, 'REDIS_TLS has no effect with REDIS_URL; write rediss://'],
])('%j: the error is %s', (environment, words) => {
  expect(() => loadConfig({ SESSION_SECRETS, ...environment })).toThrow(words)
})

function fileForThisTest(content: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'onetrip-config-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'secret')
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
  expect(
    loadConfig({
      SESSION_SECRETS,
      REDIS_URL: 'unix://api@localhost/run/redis.sock',
      REDIS_PASSWORD_FILE: fileForThisTest('word'),
    }).REDIS_URL,
  ).toBe('unix://api:word@localhost/run/redis.sock')
})

test('a cluster and sentinels use the settings for user, password and TLS', () => {
  const REDIS_PASSWORD_FILE = fileForThisTest('p@ss word\n')
  const login = { REDIS_USERNAME: 'api', REDIS_PASSWORD_FILE, REDIS_TLS: 'true' }
  const cluster = loadConfig({ SESSION_SECRETS, ...login, REDIS_CLUSTER: 'a:1, [::1]:2' })
  expect(redisLocation(cluster)).toEqual({
    cluster: { nodes: ['a:1', '[::1]:2'], username: 'api', password: 'p@ss word', tls: true },
  })
  const sentinels = loadConfig({
    ...{ SESSION_SECRETS, ...login, REDIS_TLS_SERVER_NAME: 'redis.test' },
    ...{ REDIS_SENTINELS: 'a,b:2', REDIS_SENTINEL_NAME: 'm' },
    ...{ REDIS_SENTINEL_USERNAME: 's', REDIS_SENTINEL_PASSWORD_FILE: fileForThisTest('t') },
  })
  expect(redisLocation(sentinels)).toEqual({
    sentinel: {
      ...{ nodes: ['a', 'b:2'], name: 'm', username: 'api', password: 'p@ss word' },
      ...{ tls: { servername: 'redis.test' }, sentinelUsername: 's', sentinelPassword: 't' },
    },
  })
  expect(redisLocation(loadConfig({ SESSION_SECRETS }))).toEqual({
    url: 'redis://127.0.0.1:6390',
  })
})

test('a migration target uses the user, password and TLS of REDIS_URL, unless it is a URL', () => {
  const targetOf = (settings: Record<string, string>) =>
    migrationTarget(loadConfig({ SESSION_SECRETS, REDIS_MIGRATE_HOME: 'source', ...settings }))
  const source = {
    REDIS_URL: 'rediss://api@redis.test',
    REDIS_PASSWORD_FILE: fileForThisTest('p@ss word\n'),
  }
  const cluster = { nodes: ['a:1', '[::1]:2'], username: 'api', password: 'p@ss word' }
  const nodes = { ...source, REDIS_MIGRATE_TO: 'a:1, [::1]:2' }
  expect(targetOf(nodes)).toEqual({ cluster: { ...cluster, tls: true } })
  expect(targetOf({ ...nodes, REDIS_TLS_SERVER_NAME: 'node.test' })).toEqual({
    cluster: { ...cluster, tls: { servername: 'node.test' } },
  })
  expect(targetOf({ REDIS_MIGRATE_TO: 'a:1' })).toEqual({ cluster: { nodes: ['a:1'], tls: false } })
  const url = 'unix://bob@localhost/redis.sock'
  expect(
    targetOf({ ...source, REDIS_TLS_SERVER_NAME: 'redis.test', REDIS_MIGRATE_TO: url }),
  ).toEqual({ url })
  expect(migrationTarget(loadConfig({ SESSION_SECRETS }))).toBeUndefined()
})

test.each([
  [{ SESSION_SECRETS_FILE: '/nowhere/secret' }, 'SESSION_SECRETS_FILE cannot be read: ENOENT'],
  [{ SESSION_SECRETS, SESSION_SECRETS_FILE: '/nowhere/secret' }, 'are both set'],
  [{ SESSION_SECRETS, REDIS_PASSWORD_FILE: '/nowhere/secret' }, 'REDIS_PASSWORD_FILE cannot be'],
  [
    { SESSION_SECRETS, REDIS_URL: 'unix:///redis.sock', REDIS_PASSWORD_FILE: '/nowhere/secret' },
    'must name a host',
  ],
])('%j is rejected: %s', (environment, words) => {
  expect(() => loadConfig(environment)).toThrow(words)
})

test('the error about a secret that is too short does not show the secret', () => {
  const SESSION_SECRETS_FILE = fileForThisTest('short-secret')
  expect(() => loadConfig({ SESSION_SECRETS_FILE })).toThrow(/^(?!.*short-secret).*SESSION_SECRETS/)
})

test('AUTH=trust is rejected in production', () => {
  expect(() => trustingAuthenticator('production')).toThrow('NODE_ENV=production')
})

test('loadConfig reads only the environment that is passed', () => {
  process.env.LOG_LEVEL = 'trace'
  onTestFinished(() => void delete process.env.LOG_LEVEL)
  expect(loadConfig({ SESSION_SECRETS }).LOG_LEVEL).toBe('info')
})
