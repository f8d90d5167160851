import { expect, test } from 'vitest'
import { saturateByAutocannon } from '../../src/measure/autocannon.ts'
import type { SpeedSample } from '../../src/measure/speed.ts'
import { workload } from '../../src/measure/workload.ts'
import { serve } from '../../src/testing/serve.ts'

const calls = workload({ tokens: ['a', 'b', 'c'], connections: 3, items: 10, reads: 0.3, seed: 1 })
const common = { owned: false, calls, signal: new AbortController().signal }

const seconds = 0.5

test('counts the same requests as the server, and sends the prepared requests', async () => {
  const heads = new Set<string>()
  const items = new Set<string>()
  let received = 0
  const url = await serve(async (request, response) => {
    received++
    let body = ''
    for await (const chunk of request) body += chunk
    const { method, headers } = request
    heads.add(`${method} ${request.url} ${headers.authorization} ${headers['content-type']}`)
    if (body !== '') items.add(JSON.parse(body).item)
    response.end(body)
  })
  const result = await saturateByAutocannon({ ...common, url, seconds })
  // The server may not have read requests in flight at the end.
  expect(result.sent - received).toBeGreaterThanOrEqual(0)
  expect(result.sent - received).toBeLessThanOrEqual(calls.length)
  expect(result.ok).toBeGreaterThan(0)
  expect(result.sent - result.ok).toBeLessThanOrEqual(calls.length)
  expect(result.errors).toEqual({})
  expect(heads).toEqual(
    new Set([
      'GET /items/popular undefined undefined',
      ...['a', 'b', 'c'].flatMap((token) => [
        `POST /views Bearer ${token} application/json`,
        `GET /me Bearer ${token} undefined`,
        `GET /me/views Bearer ${token} undefined`,
      ]),
    ]),
  )
  expect(items).toContain('load-item-1')
  expect(items.size).toBeGreaterThan(3)
  expect(result.seconds).toBeGreaterThan(0.9 * seconds)
  const percentiles = Object.values(result.latency).map(Number)
  expect(percentiles).toEqual(percentiles.toSorted((a, b) => a - b))
  expect(percentiles[0]).toBeGreaterThan(0)
  expect(result.generator.cpuSeconds).toBeGreaterThan(0)
  expect(result.generator.utilization).toBeGreaterThan(0)
})

test('with finish, waits for requests in flight', async () => {
  let received = 0
  const url = await serve((_request, response) => {
    received++
    setTimeout(() => response.end(), 100)
  })
  const finished = await saturateByAutocannon({ ...common, url, seconds, finish: true })
  expect(finished.errors).toEqual({})
  expect([finished.ok, finished.sent]).toEqual([received, received])
  const cut = await saturateByAutocannon({ ...common, url, seconds })
  expect(cut.sent - cut.ok).toBe(calls.length)
})

test('samples the speed', async () => {
  const samples: SpeedSample[] = []
  const enough = new AbortController()
  const { promise: sampled, resolve } = Promise.withResolvers<void>()
  const url = await serve(async (_request, response) => {
    await sampled
    response.end()
  })
  await saturateByAutocannon({
    ...common,
    url,
    seconds: 60,
    signal: enough.signal,
    onSample(sample) {
      samples.push(sample)
      resolve()
      if (sample.p99Ms !== null) enough.abort()
    },
  })
  expect(samples[0]).toMatchObject({ requestsPerSecond: 0, p99Ms: null })
  const fast = samples.find(({ p99Ms }) => p99Ms !== null)
  expect(fast?.requestsPerSecond).toBeGreaterThan(0)
  expect(fast?.atMs).toBeGreaterThan(samples[0]?.atMs ?? Number.NaN)
})

test('counts errors by kind', async () => {
  let received = 0
  const url = await serve((request, response) => {
    request.resume()
    received++
    if (received % 10 === 0) return void request.socket.destroy()
    response.statusCode = received % 2 === 0 ? 503 : 200
    response.end()
  })
  const { errors, ok } = await saturateByAutocannon({ ...common, url, seconds: 2 })
  expect(ok).toBeGreaterThan(0)
  expect(errors['503']).toBeGreaterThan(0)
  // The client may see an end or a reset; every request must be counted.
  const { lost = 0, ECONNRESET = 0, EPIPE = 0, read = 0, ...others } = errors
  expect(lost + ECONNRESET + EPIPE + read).toBeGreaterThan(0)
  expect(Object.keys(others)).toEqual(['503'])
})
