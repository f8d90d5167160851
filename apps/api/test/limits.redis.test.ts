import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay, setImmediate } from 'node:timers/promises'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import type { Limits } from '../src/limits.ts'
import { appForThisTest } from './support.ts'

const redis = redisOfThisFile()

/** The port of an API with these limits. */
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

/** What the server said until it closed the connection, or reset it since more was sent. */
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

/** Sends a little again and again, until there is an answer. */
async function drip(socket: Socket, piece: string): Promise<void> {
  const answered = once(socket, 'readable').then(() => true)
  while (!(await Promise.race([answered, delay(20)]))) {
    await setImmediate() // what has arrived is read first: a write after the end would lose it
    if (socket.readableLength === 0) socket.write(piece)
  }
}

test.each([
  ['says nothing', '', undefined],
  ['never ends its request line', 'GET /', 'a'],
  ['sends headers for ever', `GET /healthz HTTP/1.1\r\n${HOST}`, 'x: y\r\n'],
  [
    'sends its body a byte at a time',
    `POST /login HTTP/1.1\r\n${HOST}content-type: application/json\r\ncontent-length: 4000\r\n\r\n`,
    ' ',
  ],
  [
    'sends chunks for ever',
    `POST /login HTTP/1.1\r\n${HOST}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
    '1\r\n \r\n',
  ],
])('a client that %s is told 408, and its connection closed', async (_what, head, piece) => {
  const socket = await connectTo(await portWith(shortTimes))
  socket.write(head)
  if (piece) await drip(socket, piece)
  const said = await saidUntilClosed(socket)
  expect(said).toMatch(/^HTTP\/1.1 408 /)
  expect(said).toContain('"code":"API_REQUEST_TIMEOUT"')
})

test('a connection that is idle after a request is closed without a word', async () => {
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
  ['a long address', 431, `GET /healthz?${'y'.repeat(8_200)} HTTP/1.1\r\n${HOST}\r\n`],
  ['a long part of the path', 414, `GET /me/sessions/${'y'.repeat(101)} HTTP/1.1\r\n${HOST}\r\n`],
  [
    'a long body that it announces',
    413,
    `POST /login HTTP/1.1\r\n${HOST}content-type: application/json\r\ncontent-length: 4097\r\n\r\n`,
  ],
  [
    'a long body that it does not announce',
    413,
    `POST /login HTTP/1.1\r\n${HOST}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1001\r\n${' '.repeat(4097)}`,
  ],
])('%s is refused with %i', async (_what, status, bytes) => {
  const socket = await connectTo(await portWith({}))
  socket.write(bytes)
  const [first] = await once(socket, 'data')
  expect(String(first)).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
})

test('what is just within the limits is accepted', async () => {
  const socket = await connectTo(await portWith({}))
  const body = JSON.stringify({ user: 'ada' }).padEnd(4096)
  socket.write(
    `POST /login HTTP/1.1\r\n${HOST}x: ${'y'.repeat(7_900)}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 200 /)
})

test('more connections than allowed are closed at once, and one that ends makes room', async () => {
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
