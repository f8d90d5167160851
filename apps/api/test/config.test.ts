import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { trustingAuthenticator } from '../src/authenticator.ts'
import { loadConfig } from '../src/config.ts'
import { configSchema } from '../src/config-schema.ts'
import { migrationTarget, redisLocation } from '../src/redis-location.ts'

const SESSION_SECRETS = 'x'.repeat(32)

test('.env.example lists every setting with its default, and no other', () => {
  const example = readFileSync(new URL('../.env.example', import.meta.url), 'utf8')
  const lines = example.split('\n').filter((line) => /^[A-Z]/.test(line))
  const settings = Object.entries(configSchema.properties).map(
    ([name, schema]) => `${name}=${'default' in schema ? schema.default : ''}`,
  )
  expect(lines).toEqual(settings)
})

test('docker/password.yml has settings with which the API starts in production', () => {
  const file = readFileSync(new URL('../../../docker/password.yml', import.meta.url), 'utf8')
  const lines = [...file.matchAll(/^ {4}([A-Z_]+): (?:\$\{\w+:-)?([^}\n]+)/gm)]
  const settings = Object.fromEntries(lines.map(([, name, value]) => [name, value]))
  expect(Object.keys(configSchema.properties)).toEqual(
    expect.arrayContaining(Object.keys(settings)),
  )
  expect(loadConfig({ SESSION_SECRETS, ...settings })).toMatchObject({
    NODE_ENV: 'production',
    AUTH: 'password',
    USERS_FILE: '/run/secrets/users',
    LOGIN_LIMIT_PER_ADDRESS: 500,
  })
})

test('defaults are filled in', () => {
  expect(loadConfig({ SESSION_SECRETS })).toMatchObject({ PORT: 3000, STRATEGY: 'batch' })
})

test.each([
  [{}, 'SESSION_SECRETS'],
  [{ SESSION_SECRETS: 'short' }, 'SESSION_SECRETS'],
  [{ SESSION_SECRETS: `${SESSION_SECRETS},short` }, 'SESSION_SECRETS'],
  [{ SESSION_SECRETS, PORT: '99999' }, 'PORT'],
  [{ SESSION_SECRETS, NODE_ENV: 'production', DEMO_SOCKET: '/run/demo.sock' }, 'DEMO_SOCKET'],
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
])('%j is refused, naming %s', (environment, name) => {
  expect(() => loadConfig(environment)).toThrow(name)
})

test.each([
  [{ AUTH: 'ldap' }, 'AUTH must be one of trust, password'],
  [{ AUTH: 'password' }, 'AUTH=password needs a USERS_FILE'],
  [{ USERS_FILE: 'users' }, 'USERS_FILE is set, but AUTH is not password'],
  [{ SHOP_SELLERS: 'ada' }, 'SHOP_SELLERS is set, but AUTH is not password'],
  [{ SALE_METHOD: 'fast' }, 'SALE_METHOD must be one of script, '],
  [{ SALE_METHOD: 'naive', NODE_ENV: 'production' }, 'SALE_METHOD=naive oversells'],
  [{ RISK_CACHE_ENTRIES: '0' }, 'RISK_CACHE_ENTRIES is set, but RISK_FEATURES is not true'],
  [{ WORKERS: '0' }, 'WORKERS is not in its form: Processes on the one port, 1 to 99; auto:'],
  [{ STRATEGY: 'fast' }, 'STRATEGY must be one of naive, '],
  [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4318' },
    'OTEL_EXPORTER_OTLP_ENDPOINT is not in its form',
  ],
  [
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    'OTEL_EXPORTER_OTLP_PROTOCOL must be one of http/protobuf',
  ],
  [{ OTEL_TRACES_SAMPLER: 'some' }, 'OTEL_TRACES_SAMPLER must be one of always_on, '],
  [{ OTEL_TRACES_SAMPLER_ARG: '1.5' }, 'OTEL_TRACES_SAMPLER_ARG must be <= 1'],
  [
    { OTEL_TRACES_SAMPLER_ARG: '0.1' },
    'OTEL_TRACES_SAMPLER_ARG is set, but OTEL_TRACES_SAMPLER is',
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
    'REDIS_USERNAME is set, but REDIS_PASSWORD_FILE',
  ],
  [{ REDIS_CLUSTER: 'a:1', REDIS_TLS_SERVER_NAME: 'a' }, 'need REDIS_TLS=true'],
  [{ REDIS_CLUSTER: 'a:1', REDIS_PARTITIONS: '0' }, 'REDIS_PARTITIONS must be >= 1'],
  [{ REDIS_CLUSTER: 'a:1', STRATEGY: 'script' }, 'STRATEGY=script needs all keys on one server'],
  [{ REDIS_CLUSTER: 'a:1', SALE_METHOD: 'optimistic' }, 'SALE_METHOD=optimistic watches a key'],
  [
    { REDIS_CLUSTER: 'a:1', RISK_FEATURES: 'true', RISK_CACHE_ENTRIES: '5' },
    'RISK_CACHE_ENTRIES is set, but with REDIS_CLUSTER there is no cache',
  ],
  [
    { REDIS_PARTITIONS: '128' },
    'REDIS_PARTITIONS is set, but neither REDIS_CLUSTER nor REDIS_MIGRATE_TO is',
  ],
  [{ REDIS_MIGRATE_TO: 'a:1' }, 'REDIS_MIGRATE_TO and REDIS_MIGRATE_HOME need each other'],
  [{ REDIS_MIGRATE_HOME: 'source' }, 'REDIS_MIGRATE_TO and REDIS_MIGRATE_HOME need each other'],
  [
    { REDIS_MIGRATE_TO: 'a:1', REDIS_MIGRATE_HOME: 'cluster' },
    'REDIS_MIGRATE_HOME is not in its form: With REDIS_MIGRATE_TO: source or target',
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
    'REDIS_MIGRATE_TO and REDIS_CLUSTER are both set: sessions move from the single Redis of REDIS_URL',
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
  [{ REDIS_SENTINELS: 'a:1' }, 'REDIS_SENTINELS needs a REDIS_SENTINEL_NAME'],
  [{ REDIS_SENTINEL_NAME: 'm' }, 'REDIS_SENTINEL_NAME is set, but REDIS_SENTINELS is not'],
  [{ REDIS_SENTINEL_USERNAME: 'm' }, 'REDIS_SENTINEL_USERNAME is set, but REDIS_SENTINELS is not'],
  [
    { REDIS_SENTINELS: 'a', REDIS_SENTINEL_NAME: 'm', REDIS_SENTINEL_USERNAME: 'u' },
    'REDIS_SENTINEL_USERNAME is set, but REDIS_SENTINEL_PASSWORD_FILE is not',
  ],
  [{ REDIS_USERNAME: 'api' }, 'REDIS_USERNAME is set, but REDIS_URL has the user name'],
  [{ REDIS_TLS: 'true' }, 'REDIS_TLS is set, but REDIS_URL says so itself: rediss://'],
])('%j: the error tells what is allowed', (environment, words) => {
  expect(() => loadConfig({ SESSION_SECRETS, ...environment })).toThrow(words)
})

function fileForThisTest(content: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'onetrip-config-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'secret')
  writeFileSync(path, content)
  return path
}

test('secrets come from files, without the line end that editors leave', () => {
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

test('a cluster and sentinels get user, password and TLS of the settings', () => {
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

test('the nodes that sessions move to get user, password and TLS of REDIS_URL; a URL has its own', () => {
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
])('%j is refused: %s', (environment, words) => {
  expect(() => loadConfig(environment)).toThrow(words)
})

test('a file with too short a secret is refused without showing it', () => {
  const SESSION_SECRETS_FILE = fileForThisTest('short-secret')
  expect(() => loadConfig({ SESSION_SECRETS_FILE })).toThrow(/^(?!.*short-secret).*SESSION_SECRETS/)
})

test('the stand-in that believes every name refuses production', () => {
  expect(() => trustingAuthenticator('production')).toThrow('NODE_ENV=production')
})

test('only the environment that is given counts', () => {
  process.env.LOG_LEVEL = 'trace'
  onTestFinished(() => void delete process.env.LOG_LEVEL)
  expect(loadConfig({ SESSION_SECRETS }).LOG_LEVEL).toBe('info')
})
