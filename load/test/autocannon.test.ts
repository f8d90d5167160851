import { createServer, type RequestListener } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { saturate } from '../src/http/autocannon.ts'
import { workload } from '../src/http/workload.ts'
import { freePorts } from '../src/stack/ports.ts'

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return `http://127.0.0.1:${address.port}`
}

const views = workload({ tokens: ['a', 'b', 'c'], connections: 3, items: 10, seed: 1 })
const never = new AbortController().signal

test('counts what the server counts, and sends what was prepared', async () => {
  const seen = new Set<string>()
  let received = 0
  const url = await serve(async (request, response) => {
    received++
    let body = ''
    for await (const chunk of request) body += chunk
    const { method, headers } = request
    seen.add(`${method} ${request.url} ${headers.authorization} ${headers['content-type']}`)
    response.end(JSON.stringify({ item: JSON.parse(body).item }))
  })
  const result = await saturate({ url, views, seconds: 0.5, signal: never })
  // The server may not have read what was in flight at the end.
  expect(result.sent - received).toBeGreaterThanOrEqual(0)
  expect(result.sent - received).toBeLessThanOrEqual(views.length)
  expect(result.ok).toBeGreaterThan(100)
  expect(result.sent - result.ok).toBeLessThanOrEqual(views.length)
  expect(result.errors).toEqual({})
  expect(seen).toEqual(
    new Set(['a', 'b', 'c'].map((token) => `POST /views Bearer ${token} application/json`)),
  )
  expect(result.seconds).toBeGreaterThanOrEqual(0.5)
  expect(result.latency.p50).toBeGreaterThan(0)
  expect(result.latency.p50).toBeLessThanOrEqual(result.latency.p99)
  expect(result.latency.p99).toBeLessThanOrEqual(result.latency.max)
  expect(result.generator.cpuSeconds).toBeGreaterThan(0)
})

test('errors are told apart by kind', async () => {
  let received = 0
  const url = await serve((request, response) => {
    request.resume()
    received++
    if (received % 10 === 0) return void request.socket.destroy()
    response.statusCode = received % 2 === 0 ? 503 : 200
    response.end()
  })
  const { errors, ok } = await saturate({ url, views, seconds: 0.5, signal: never })
  expect(ok).toBeGreaterThan(10)
  expect(errors['503']).toBeGreaterThan(10)
  // Whether the client sees an end or a reset, the requests do not vanish from the books.
  expect((errors.lost ?? 0) + (errors.ECONNRESET ?? 0) + (errors.EPIPE ?? 0)).toBeGreaterThan(0)
})

test('nobody there', async () => {
  const [port] = await freePorts(1)
  const url = `http://127.0.0.1:${port}`
  const { ok, sent, errors } = await saturate({ url, views, seconds: 0.5, signal: never })
  expect(ok).toBe(0)
  expect(errors.ECONNREFUSED).toBeGreaterThan(0)
  expect(sent).toBeLessThanOrEqual(views.length)
})

test('is ended by a signal', async () => {
  const url = await serve((_request, response) => void response.end())
  const controller = new AbortController()
  const running = saturate({ url, views, seconds: 60, signal: controller.signal })
  controller.abort()
  expect((await running).seconds).toBeLessThan(5)
})

test('goes nowhere but to this machine', async () => {
  const elsewhere = saturate({ url: 'http://192.0.2.1', views, seconds: 1, signal: never })
  await expect(elsewhere).rejects.toThrow('this machine')
})
