import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay, setImmediate } from 'node:timers/promises'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import type { Limits } from '../src/limits.ts'
import { appForThisTest } from './support.ts'

const redis = redisOfThisFile()

/** Starts an API with these limits, and returns its port. */
async function portWith(limits: Partial<Limits>): Promise<number> {
  const app = await appForThisTest(redis.socket, { limits })
  await app.listen({ host: '127.0.0.1', port: 0 })
  return (app.server.address() as AddressInfo).port
}

async function connectTo(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  return socket
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
  ['sends endless headers', `GET /healthz HTTP/1.1\r\n${HOST}`, 'x: y\r\n'],
  [
    'sends its body byte by byte',
    `POST /login HTTP/1.1\r\n${HOST}content-type: application/json\r\ncontent-length: 4000\r\n\r\n`,
    ' ',
  ],
  [
    'sends endless chunks',
    `POST /login HTTP/1.1\r\n${HOST}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
    '1\r\n \r\n',
  ],
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
  socket.write(`GET /healthz HTTP/1.1\r\n${HOST}\r\n`)
  const said = await saidUntilClosed(socket)
  expect(said).toMatch(/^HTTP\/1.1 200 /)
  expect(said.endsWith('{"status":"ok"}')).toBe(true)
})

test.each([
  ['a long header', 431, `GET /healthz HTTP/1.1\r\n${HOST}x: ${'y'.repeat(8_200)}\r\n\r\n`],
  [
    'many headers',
    431,
    `GET /healthz HTTP/1.1\r\n${HOST}${'x: yyyyyyyyyy\r\n'.repeat(800)}\r\n\r\n`,
  ],
  ['a long URL', 431, `GET /healthz?${'y'.repeat(8_200)} HTTP/1.1\r\n${HOST}\r\n`],
  ['a long path parameter', 414, `GET /me/sessions/${'y'.repeat(101)} HTTP/1.1\r\n${HOST}\r\n`],
  [
    'a long body with content-length',
    413,
    `POST /login HTTP/1.1\r\n${HOST}content-type: application/json\r\ncontent-length: 4097\r\n\r\n`,
  ],
  [
    'a long body in chunks',
    413,
    `POST /login HTTP/1.1\r\n${HOST}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1001\r\n${' '.repeat(4097)}`,
  ],
])('%s is rejected with %i', async (_what, status, bytes) => {
  const socket = await connectTo(await portWith({}))
  socket.write(bytes)
  const [first] = await once(socket, 'data')
  expect(String(first)).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
})

test('requests just within the limits are accepted', async () => {
  const socket = await connectTo(await portWith({}))
  const body = JSON.stringify({ user: 'ada' }).padEnd(4096)
  socket.write(
    `POST /login HTTP/1.1\r\n${HOST}x: ${'y'.repeat(7_900)}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 200 /)
})

test('connections above the maximum are closed at once; a closed connection makes room', async () => {
  const port = await portWith({ connections: 2 })
  const ask = (socket: Socket) => void socket.write(`GET /healthz HTTP/1.1\r\n${HOST}\r\n`)
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
