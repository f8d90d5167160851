import { makeCertificates } from '@onetrip/stack/testing/certificates.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { tlsFrontForThisTest } from '@onetrip/stack/testing/tls.ts'
import { expect, test } from 'vitest'
import { apiProcessForThisTest } from './api-process.ts'
import { ask, connectionsOf, logIn } from './client.ts'

const server = redisOfThisFile()

test('the API connects with TLS', async () => {
  const certificates = makeCertificates(await temporaryFolder())
  const { port, names } = await tlsFrontForThisTest(server.socket, certificates)
  const { url } = await apiProcessForThisTest({
    REDIS_URL: `rediss://127.0.0.1:${port}/2`,
    REDIS_TLS_CA_FILE: certificates.authority.certFile,
    REDIS_TLS_CERT_FILE: certificates.client.certFile,
    REDIS_TLS_KEY_FILE: certificates.client.keyFile,
    REDIS_TLS_SERVER_NAME: 'redis.test',
  })
  const token = await logIn(url)
  expect(await ask(`${url}/me`, { token })).toMatchObject({ user: 'ada' })
  expect(await server.redis.info('keyspace')).toContain('db2:')
  expect(await connectionsOf(url)).toEqual({ ready: 1, down: 0 })
  expect(names).toEqual(['redis.test'])
})
