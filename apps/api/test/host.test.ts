import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { exchange } from './hostile/wire.ts'
import { appOn } from './support.ts'

let port: number
let app: Awaited<ReturnType<typeof appOn>>

beforeAll(async () => {
  app = await appOn('/nowhere/redis.sock')
  await app.listen({ host: '127.0.0.1', port: 0 })
  port = (app.server.address() as AddressInfo).port
})
afterAll(() => app.close())

const ask = (version: string, ...headers: string[]) =>
  exchange(
    port,
    Buffer.from(
      `GET /healthz HTTP/${version}\r\n${headers.join('\r\n')}\r\nconnection: close\r\n\r\n`,
    ),
  )

test.each([
  'a',
  'shop.example',
  'SHOP.example:8080',
  '127.0.0.1:3000',
  '[::1]',
  '[2001:db8::1]:443',
  'my_service',
  'xn--bcher-kva.example.',
  'a:',
  '',
])('%j is accepted as a host', async (host) => {
  expect((await ask('1.1', `host: ${host}`)).statuses).toEqual([200])
})

test('a request without a Host header is rejected in HTTP/1.1 and accepted in HTTP/1.0', async () => {
  const { statuses, text } = await ask('1.1', 'x: y')
  expect(statuses).toEqual([400])
  expect(text).toContain('"code":"API_BAD_REQUEST"')
  expect(text).toContain('the Host header is missing')
  expect((await ask('1.0', 'x: y')).statuses).toEqual([200])
  expect((await ask('1.0', 'host: a', 'host: b')).statuses).toEqual([400])
})

test('two Host headers are rejected with a code and a message', async () => {
  const { statuses, text } = await ask('1.1', 'host: a', 'host: b')
  expect(statuses).toEqual([400])
  expect(text).toContain('"code":"API_BAD_REQUEST"')
  expect(text).toContain('the Host header is invalid or repeated')
})
