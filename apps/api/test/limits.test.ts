import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as delay, setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { Limits } from '../src/limits.ts'
import { appOn, connectTo, listen } from './support.ts'

/** Starts an API with these limits, without Redis, and returns its port. */
async function portWith(limits: Partial<Limits>): Promise<number> {
  const app = await appOn('/nowhere/redis.sock', { limits })
  onTestFinished(() => app.close())
  return await listen(app)
}

/** Everything that the server sent before it closed or reset the connection. */
async function saidUntilClosed(socket: Socket): Promise<string> {
  let said = ''
  try {
    for await (const chunk of socket) said += chunk
  } catch (error) {
    expect(error).toMatchObject({ code: 'ECONNRESET' })
  }
  return said
}

const HOST = 'host: 127.0.0.1\r\n'
const HEALTH = `GET /healthz HTTP/1.1\r\n${HOST}`
const LOGIN = `POST /login HTTP/1.1\r\n${HOST}content-type: application/json\r\n`
const shortTimes = { headersMs: 200, requestMs: 400, checkEveryMs: 50 }

/** Sends the piece repeatedly until there is a response. */
async function drip(socket: Socket, piece: string): Promise<void> {
  const answered = once(socket, 'readable').then(() => true)
  while (!(await Promise.race([answered, delay(20)]))) {
    await setImmediate() // read first: a write after the end would discard data that has arrived
    if (socket.readableLength === 0) socket.write(piece)
  }
}

test.each([
  ['sends nothing', '', undefined],
  ['never ends its request line', 'GET /', 'a'],
  ['sends endless headers', HEALTH, 'x: y\r\n'],
  ['sends its body byte by byte', `${LOGIN}content-length: 4000\r\n\r\n`, ' '],
  ['sends endless chunks', `${LOGIN}transfer-encoding: chunked\r\n\r\n`, '1\r\n \r\n'],
])('a client that %s gets 408, and its connection is closed', async (_what, head, piece) => {
  const socket = await connectTo(await portWith(shortTimes))
  socket.write(head)
  if (piece) await drip(socket, piece)
  const said = await saidUntilClosed(socket)
  expect(said).toMatch(/^HTTP\/1.1 408 /)
  expect(said).toContain('"code":"API_REQUEST_TIMEOUT"')
})

test('an idle keep-alive connection is closed without a response', async () => {
  const socket = await connectTo(await portWith({ keepAliveMs: 100 }))
  socket.write(`${HEALTH}\r\n`)
  const said = await saidUntilClosed(socket)
  expect(said).toMatch(/^HTTP\/1.1 200 /)
  expect(said.endsWith('{"status":"ok"}')).toBe(true)
})

const padded = (bytes: number) => JSON.stringify({ user: 'ada' }).padEnd(bytes)

test.each([
  ['headers just within the limit', 200, `${HEALTH}x: ${'y'.repeat(8_000)}\r\n\r\n`],
  ['a long header', 431, `${HEALTH}x: ${'y'.repeat(8_200)}\r\n\r\n`],
  ['the longest body', 503, `${LOGIN}content-length: 4096\r\n\r\n${padded(4096)}`], // reaches Redis
  ['a longer body', 413, `${LOGIN}content-length: 4097\r\n\r\n`],
  [
    'a longer body in chunks',
    413,
    `${LOGIN}transfer-encoding: chunked\r\n\r\n1001\r\n${padded(4097)}`,
  ],
])('%s: %i', async (_what, status, bytes) => {
  const socket = await connectTo(await portWith({}))
  socket.write(bytes)
  const [first] = await once(socket, 'data')
  expect(String(first)).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
})

test('connections above the maximum are closed at once; a closed connection makes room', async () => {
  const port = await portWith({ connections: 2 })
  const ask = (socket: Socket) => void socket.write(`${HEALTH}\r\n`)
  const [first, second] = [await connectTo(port), await connectTo(port)]
  for (const socket of [first, second]) {
    ask(socket)
    await once(socket, 'data')
  }
  expect(await saidUntilClosed(await connectTo(port))).toBe('')
  first.destroy()
  await expect
    .poll(async () => {
      const socket = await connectTo(port)
      ask(socket)
      const said = await Promise.race([once(socket, 'data'), once(socket, 'close')])
      return String(said[0]).slice(0, 15)
    })
    .toBe('HTTP/1.1 200 OK')
})
