import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConnectionOptions } from 'node:tls'
import { freePorts } from '@onetrip/stack/ports.ts'
import { makeCertificates, SERVER_NAME } from '@onetrip/stack/testing/certificates.ts'
import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { tlsFrontForThisTest } from '@onetrip/stack/testing/tls.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseRedisUrl, type SessionStoreOptions } from '../src/index.ts'
import { newStore } from './fixture.ts'

const server = redisOfThisFile()

let folder: string
let certificates: ReturnType<typeof makeCertificates>
let trusted: ConnectionOptions

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'onetrip-tls-'))
  certificates = makeCertificates(folder)
  const { authority, client } = certificates
  trusted = { ca: authority.cert, cert: client.cert, key: client.key }
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The options for a URL with these options of TLS. */
const at = (url: string, tls: ConnectionOptions) => parseRedisUrl(url, tls).options

async function view(options: Partial<SessionStoreOptions>) {
  const store = newStore(options)
  await store.ready(options.deadlineMs)
  const { token } = await store.login('ada')
  return await store.recordView(token, 'book')
}

/** The cause of the missing connection. How long it takes to fail depends on the machine. */
const failure = (options: Partial<SessionStoreOptions>) =>
  view({ deadlineMs: 300, ...options }).then(
    () => undefined,
    (error: { cause?: { message?: string; code?: string } }) =>
      error.cause?.code ?? error.cause?.message,
  )

test('works with TLS, a client certificate, SNI, an ACL user and a database', async () => {
  await server.redis.call('ACL', 'SETUSER', 'shop', 'on', '>p@ss', '~*', '&*', '+@all')
  const { port, names } = await tlsFrontForThisTest(server.socket, certificates)
  const url = `rediss://shop:p%40ss@127.0.0.1:${port}/3`
  const tls = { ...trusted, servername: SERVER_NAME }
  expect(await view({ redis: at(url, tls) })).toEqual({ user: 'ada', views: 1 })
  expect(new Set(names)).toEqual(new Set([SERVER_NAME]))
  expect(await server.redis.info('keyspace')).toContain('db3:')
})

test('the host of the URL is the name by default', async () => {
  const { port, names } = await tlsFrontForThisTest(server.socket, certificates)
  await view({ redis: at(`rediss://localhost:${port}`, trusted) })
  expect(names).toEqual(['localhost'])
})

test.each([
  ['an authority that is not trusted', { ca: undefined }, /SELF_SIGNED|UNABLE_TO/],
  [
    'a certificate for another name',
    { servername: 'somebody.test' },
    'ERR_TLS_CERT_ALTNAME_INVALID',
  ],
])('%s: ready() fails, and the cause has the error of TLS', async (_name, change, code) => {
  const { port } = await tlsFrontForThisTest(server.socket, certificates)
  const url = `rediss://localhost:${port}`
  await expect.poll(() => failure({ redis: at(url, { ...trusted, ...change }) })).toMatch(code)
})

test.each(['missing', 'untrusted'])('a client certificate that is %s is refused', async (which) => {
  const { port, names } = await tlsFrontForThisTest(server.socket, certificates)
  const { authority, stranger } = certificates
  const own = which === 'missing' ? {} : { cert: stranger.cert, key: stranger.key }
  const tls = { ca: authority.cert, ...own }
  await expect(
    view({ redis: at(`rediss://localhost:${port}`, tls), deadlineMs: 300 }),
  ).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
  expect(names).toEqual([])
})

test('unusable TLS options throw a TypeError', () => {
  const { client } = certificates
  expect(() => at('redis://h', trusted)).toThrow('begins with rediss://')
  expect(() => at('unix:///redis.sock', trusted)).toThrow('begins with rediss://')
  const create = (tls: ConnectionOptions) => () => newStore({ redis: { host: 'h', tls } })
  expect(create({ cert: client.cert })).toThrow('set both cert and key, or neither')
  expect(create({ ca: '-----BEGIN CERTIFICATE-----\nabc' })).toThrow('unusable ca, cert or key')
  const { key } = certificates.stranger
  expect(create({ cert: client.cert, key })).toThrow('unusable ca, cert or key')
})

test("Redis's own TLS, with a client certificate", async (context) => {
  const { authority, server: own } = certificates
  const [port = 0] = await freePorts(1)
  const config = {
    'tls-port': String(port),
    'tls-cert-file': own.certFile,
    'tls-key-file': own.keyFile,
    'tls-ca-cert-file': authority.certFile,
    'tls-auth-clients': 'yes',
  }
  const redis = await redisForThisTest({ config }).catch((error: Error) => {
    if (!error.message.includes('Failed finding TLS support')) throw error
    context.skip('this Redis was built without TLS; npm run test:servers has others')
  })
  const url = `rediss://localhost:${port}`
  expect(redis).toBeDefined()
  expect(await view({ redis: at(url, trusted) })).toEqual({ user: 'ada', views: 1 })
  await expect(
    view({ redis: at(url, { ca: authority.cert }), deadlineMs: 300 }),
  ).rejects.toMatchObject({
    code: 'ONETRIP_NOT_SENT',
  })
})
