import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { trustingAuthenticator } from '../src/authenticator.ts'
import { configSchema, loadConfig } from '../src/config.ts'

const SESSION_SECRETS = 'x'.repeat(32)

test('.env.example lists every setting with its default, and no other', () => {
  const example = readFileSync(new URL('../.env.example', import.meta.url), 'utf8')
  const lines = example.split('\n').filter((line) => /^[A-Z]/.test(line))
  const settings = Object.entries(configSchema.properties).map(
    ([name, schema]) => `${name}=${'default' in schema ? schema.default : ''}`,
  )
  expect(lines).toEqual(settings)
})

test('defaults are filled in', () => {
  expect(loadConfig({ SESSION_SECRETS })).toMatchObject({ PORT: 3000, STRATEGY: 'batch' })
})

test.each([
  [{}, 'SESSION_SECRETS'],
  [{ SESSION_SECRETS: 'short' }, 'SESSION_SECRETS'],
  [{ SESSION_SECRETS: `${SESSION_SECRETS},short` }, 'SESSION_SECRETS'],
  [{ SESSION_SECRETS, PORT: '99999' }, 'PORT'],
  [{ SESSION_SECRETS, STRATEGY: 'fast' }, 'STRATEGY'],
  [{ SESSION_SECRETS, REDIS_URL: 'http://127.0.0.1' }, 'REDIS_URL'],
])('%j is refused, naming %s', (environment, name) => {
  expect(() => loadConfig(environment)).toThrow(name)
})

test('the stand-in that believes every name refuses production', () => {
  expect(() => trustingAuthenticator('production')).toThrow('NODE_ENV=production')
})
