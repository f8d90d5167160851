import { parseMetrics } from '@onetrip/stack/metrics.ts'
import { makeCertificates } from '@onetrip/stack/testing/certificates.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { tlsFrontForThisTest } from '@onetrip/stack/testing/tls.ts'
import { expect, test } from 'vitest'
import { loadConfig } from '../src/config.ts'
import { apiProcessForThisTest } from './api-process.ts'

const server = redisOfThisFile()
const SESSION_SECRETS = 'x'.repeat(32)

test('the API and its INFO poller connect with TLS', async () => {
  const { authority, client, ...others } = makeCertificates(await temporaryFolder())
  const { port, names } = await tlsFrontForThisTest(server.socket, { authority, client, ...others })
  const { url } = await apiProcessForThisTest({
    REDIS_URL: `rediss://127.0.0.1:${port}/2`,
    REDIS_TLS_CA_FILE: authority.certFile,
    REDIS_TLS_CERT_FILE: client.certFile,
    REDIS_TLS_KEY_FILE: client.keyFile,
    REDIS_TLS_SERVER_NAME: 'redis.test',
  })
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ user: 'ada' })
  const login = await fetch(`${url}/login`, { method: 'POST', headers, body })
  expect(login.status).toBe(200)
  const { token } = (await login.json()) as { token: string }
  const me = await fetch(`${url}/me`, { headers: { authorization: `Bearer ${token}` } })
  expect(await me.json()).toMatchObject({ user: 'ada' })
  expect(await server.redis.info('keyspace')).toContain('db2:')
  const isUp = async () => {
    const metrics = parseMetrics(await (await fetch(`${url}/metrics`)).text())
    return metrics.find(({ name }) => name === 'onetrip_redis_up')?.value
  }
  await expect.poll(isUp).toBe(1)
  expect(names).toEqual(['redis.test', 'redis.test']) // the pool's connection and the poller's
})

test('TLS settings that are invalid or have no effect are rejected', async () => {
  const { authority, client } = makeCertificates(await temporaryFolder())
  const load = (settings: Record<string, string>) => () =>
    loadConfig({ SESSION_SECRETS, REDIS_URL: 'rediss://redis:6379', ...settings })
  const refused: [Record<string, string>, string][] = [
    [{ REDIS_TLS_CA_FILE: '/nowhere/ca' }, 'REDIS_TLS_CA_FILE cannot be read: ENOENT'],
    [{ REDIS_TLS_CA_FILE: client.keyFile }, 'REDIS_TLS_…: tls has an unusable ca, cert or key'],
    [{ REDIS_TLS_CERT_FILE: client.certFile }, 'set both cert and key, or neither'],
    [{ REDIS_TLS_KEY_FILE: client.keyFile }, 'set both cert and key, or neither'],
    [
      { REDIS_TLS_CERT_FILE: client.certFile, REDIS_TLS_KEY_FILE: authority.keyFile },
      'REDIS_TLS_…: tls has an unusable ca, cert or key',
    ],
    [
      { REDIS_URL: 'redis://redis:6379', REDIS_TLS_SERVER_NAME: 'redis.test' },
      'REDIS_URL and REDIS_TLS_…: tls needs a URL that begins with rediss://',
    ],
  ]
  for (const [settings, words] of refused) expect(load(settings)).toThrow(words)
})
