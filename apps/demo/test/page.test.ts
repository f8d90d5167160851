import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pageFolder } from '../src/routes/page.ts'
import { demoOn } from './support.ts'

const MAX_TRANSFERRED_BYTES = 200_000

// These tests need no Redis.
let app: FastifyInstance
beforeAll(async () => {
  app = await demoOn('/nowhere/redis.sock')
})
afterAll(() => app.close())

const get = (url: string, headers = {}, method: 'GET' | 'HEAD' = 'GET') =>
  app.inject({ method, url, headers })

/** The paths that a file of the page loads. */
function loadedBy(path: string, text: string): string[] {
  const pattern = path.endsWith('.js')
    ? /\b(?:from |import\()'([^']+\.js)'|['`](\/page\/[^'`#]+)/g
    : /(?:href|src)="(\/page\/[^"#]+)/g
  const found = [...text.matchAll(pattern)].map(([, one, other]) => one ?? other ?? '')
  return found.map((to) => new URL(to, `http://localhost${path}`).pathname)
}

/** All paths that a browser loads for the page, including `/`. */
async function loaded(): Promise<string[]> {
  const paths = ['/']
  for (const path of paths) {
    const { body, statusCode } = await get(path)
    expect(statusCode, path).toBe(200)
    if (!/\.(js|html)$|\/$/.test(path)) continue
    for (const next of loadedBy(path, body)) if (!paths.includes(next)) paths.push(next)
  }
  return paths
}

describe('the page', () => {
  test('is served without Redis, with a policy that allows only resources of the API', async () => {
    const { statusCode, headers, body } = await get('/')
    expect(statusCode).toBe(200)
    expect(body).toBe(await readFile(join(pageFolder, 'index.html'), 'utf8'))
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'public, max-age=0',
      'x-content-type-options': 'nosniff',
    })
    const policy = String(headers['content-security-policy'])
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("script-src 'self'")
    expect(policy).toContain("style-src 'self'")
    expect(policy).not.toContain('unsafe')
  })

  test('has no inline script or style, and no URL of another host', async () => {
    const { body } = await get('/')
    expect(body).not.toMatch(/\sstyle=|<style|\son\w+=|https?:/)
    for (const [tag] of body.matchAll(/<script[^>]*>/g)) expect(tag).toContain('src="/page/')
  })

  test('shows the ratio that the README has published', async () => {
    const readme = await readFile(new URL('../../../README.md', import.meta.url), 'utf8')
    const [table = ''] = /<!-- http.json, table 1 -->\n\n(?:\|.*\n)+/.exec(readme) ?? []
    const steps = [...table.matchAll(/^\| [\w-]+ +\|[^|]+\| +([\d.]+)/gm)] // each × the row above
    const published = steps.reduce((product, [, step]) => product * Number(step), 1)
    const [, shown] = /<strong id="hero-ratio">× ([\d.]+)</.exec((await get('/')).body) ?? []
    expect(published).toBeGreaterThan(1)
    expect(Number(shown) / published).toBeCloseTo(1, 1) // each step is rounded
  })

  test('loads every file of its folder, and no missing file', async () => {
    const paths = await loaded()
    const files = await Array.fromAsync(glob('**/*.{js,css,svg}', { cwd: pageFolder }))
    for (const file of files) expect(paths).toContain(`/page/${file}`)
  })

  test(`transfers less than ${MAX_TRANSFERRED_BYTES / 1000} kB`, async () => {
    let bytes = 0
    for (const path of await loaded()) {
      const { rawPayload, headers } = await get(path, { 'accept-encoding': 'gzip' })
      bytes += rawPayload.length + JSON.stringify(headers).length
    }
    expect(bytes).toBeGreaterThan(20_000)
    expect(bytes).toBeLessThan(MAX_TRANSFERRED_BYTES)
  })
})

describe.each(['/', '/page/styles/page.css'])('%s', (url) => {
  test('is compressed for clients that accept it', async () => {
    const plain = await get(url)
    expect(plain.headers).not.toHaveProperty('content-encoding')
    const { headers, rawPayload } = await get(url, { 'accept-encoding': 'br' })
    expect(headers['content-encoding']).toBe('br')
    expect(headers.vary).toMatch(/accept-encoding/i)
    expect(brotliDecompressSync(rawPayload).toString()).toBe(plain.body)
  })
})

test('responses of other routes are not compressed', async () => {
  const { headers } = await get('/openapi.json', { 'accept-encoding': 'br, gzip' })
  expect(headers).not.toHaveProperty('content-encoding')
  expect(headers).not.toHaveProperty('content-security-policy')
})

test.each([
  '/page/nothing.js',
  '/page/scripts',
  '/page/%2e%2e/src/application.ts',
  '/page/..%2fsrc/application.ts',
  '/page/uplot/..%2fpackage.json',
])('there is no %s', async (url) => {
  const answer = await get(url, { 'accept-encoding': 'br' })
  expect(answer.json()).toMatchObject({ statusCode: 404, code: 'API_NOT_FOUND' })
})
