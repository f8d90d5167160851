import { once } from 'node:events'
import { chown, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { repository } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { makeCertificates } from '@onetrip/stack/testing/certificates.ts'
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest'
import { outputOf } from './command.ts'
import { createStack, type Stack } from './stack.ts'

const EMAIL = 'ada@example.com'
const PASSWORD = 'correct horse battery staple'

let stack: Stack
let folder: string
let httpsPort: number
let httpPort: number
let authority: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'onetrip-users-'))
  const addUser = `node examples/applications/own-login/add-user.ts /users/users.db ${EMAIL} Ada`
  const script = `echo '${PASSWORD}' | ${addUser} && chown 1000 /users/users.db`
  const run = ['docker', 'run', '--rm', '--user', 'root', '-v', `${folder}:/users`]
  await outputOf(['docker', 'build', '-f', 'apps/api/Dockerfile', '-t', 'onetrip-api', repository])
  await outputOf([...run, 'onetrip-api', 'sh', '-c', script])
  vi.stubEnv('USERS_DATABASE', join(folder, 'users.db'))
  ;[httpsPort = 0, httpPort = 0] = await freePorts(2)
  const certificates = makeCertificates(folder)
  authority = certificates.authority.cert
  const site = join(folder, 'site.pem')
  await writeFile(site, certificates.server.key + certificates.server.cert, { mode: 0o400 })
  await chown(site, 1000, 1000)
  vi.stubEnv('CERTIFICATE_FILE', site)
  vi.stubEnv('HTTPS_ADDRESS', '127.0.0.1')
  vi.stubEnv('HTTPS_PORT', String(httpsPort))
  vi.stubEnv('HTTP_PORT', String(httpPort))
  const overrides = ['docker/password.yml', 'docker/https.yml'].map((file) =>
    readFile(join(repository, file), 'utf8'),
  )
  stack = await createStack(inject('compose'), ...(await Promise.all(overrides)))
  await stack.up()
})

afterAll(async () => {
  expect(await stack.down()).toEqual([])
  vi.unstubAllEnvs()
  await rm(folder, { recursive: true })
})

async function logIn(url: string, credentials: object): Promise<Response> {
  return await fetch(`${url}/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(credentials),
  })
}

test('in production, users of the database log in to both APIs with their passwords', async () => {
  for (const url of [stack.urls.pooled, stack.urls.naive]) {
    const answer = await logIn(url, { email: EMAIL, password: PASSWORD })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('set-cookie')).toMatch(/^__Host-onetrip=.*; Secure/)
    expect((await logIn(url, { email: EMAIL, password: 'wrong password' })).status).toBe(401)
    expect((await logIn(url, { email: 'eve@example.com', password: PASSWORD })).status).toBe(401)
    expect((await logIn(url, { email: EMAIL })).status).toBe(400)
  }
})

test('with a certificate, the proxy publishes the batch API with TLS, and the rest as before', async () => {
  // HTTP/2, and JSON in an error of the proxy.
  const session = connect(`https://127.0.0.1:${httpsPort}`, { ca: authority })
  const get = async (path: string) => {
    const stream = session.request({ ':path': path })
    const [headers] = await once(stream, 'response')
    return { headers, body: JSON.parse(await text(stream)) }
  }
  const ready = await get('/readyz')
  expect(ready.body).toEqual({ status: 'ready', strategy: 'batch' })
  expect(ready.headers['strict-transport-security']).toBe('max-age=31536000')
  const metrics = await get('/%6detrics')
  expect(metrics.headers[':status']).toBe(404)
  expect(metrics.body).toMatchObject({ statusCode: 404, code: 'API_NOT_FOUND' })
  session.close()

  const redirected = await fetch(`http://127.0.0.1:${httpPort}/me?a=b`, { redirect: 'manual' })
  expect(redirected.status).toBe(308)
  expect(redirected.headers.get('location')).toBe(`https://127.0.0.1:${httpsPort}/me?a=b`)
  const { NetworkSettings } = await stack.container('proxy')
  const ports = ['3000/tcp', '3001/tcp', '3080/tcp', '3443/tcp']
  expect(Object.keys(NetworkSettings.Ports).toSorted()).toEqual(ports)
})
