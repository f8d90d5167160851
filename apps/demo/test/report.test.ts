import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { demoOn } from './support.ts'

const page = (script: string, body = '') =>
  `<!doctype html><html><head><style>b{}</style><script>${script}</script></head><body>${body}</body></html>`

async function reportOf(content: string | null) {
  const folder = await mkdtemp(join(tmpdir(), 'onetrip-report-'))
  const file = join(folder, 'latest.report')
  if (content !== null) await writeFile(file, content)
  const app = await demoOn('/nowhere/redis.sock', { reportFile: file })
  onTestFinished(async () => {
    await app.close()
    await rm(folder, { recursive: true })
  })
  return { app, file }
}

const get = (app: FastifyInstance, headers = {}) => app.inject({ url: '/report', headers })

test('serves the page completely, with a policy that forbids loading and scripts', async () => {
  const content = page('go()', 'é <script>alert(1)</script>')
  const { app } = await reportOf(content)
  const { statusCode, headers, body } = await get(app)
  expect(statusCode).toBe(200)
  expect(body).toBe(content)
  expect(headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    'x-content-type-options': 'nosniff',
    'cache-control': 'public, max-age=0',
    'content-security-policy':
      "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  })
})

test('answers 304 until the page changes', async () => {
  const { app, file } = await reportOf(page('one()'))
  const { etag } = (await get(app)).headers
  expect((await get(app, { 'if-none-match': etag })).statusCode).toBe(304)
  await writeFile(file, page('two()'))
  await utimes(file, new Date(), new Date(Date.now() + 5_000))
  const renewed = await get(app, { 'if-none-match': etag })
  expect(renewed.statusCode).toBe(200)
  expect(renewed.body).toBe(page('two()'))
})

test('without a report, 404 says how to create one', async () => {
  const { app, file } = await reportOf(null)
  const absent = { statusCode: 404, message: expect.stringContaining('npm run load') }
  expect((await get(app)).json()).toMatchObject(absent)
  const { statusCode, headers, body } = await get(app, { accept: 'text/html,*/*;q=0.8' })
  expect({ statusCode, message: body }).toMatchObject(absent)
  expect(headers['content-type']).toContain('text/html')
  await mkdir(file)
  expect((await get(app)).statusCode).toBe(404)
  const bare = await demoOn('/nowhere/redis.sock')
  onTestFinished(() => bare.close())
  expect((await get(bare)).json().message).toContain('REPORT_FILE')
})
