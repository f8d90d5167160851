import { once } from 'node:events'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { documented, startExample, textArguments } from './example.ts'
import { adminForThisTest, idOf } from './fixture.ts'

const server = redisOfThisFile()

/** Resolves when the WebSocket is open. `closed` resolves when the server has closed it. */
async function open(port: string, headers: Record<string, string>) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`, { headers })
  onTestFinished(() => socket.terminate())
  await once(socket, 'message')
  return { closed: once(socket, 'close') }
}

test('a logout closes the WebSockets of its session, also if the subscription was cut', async () => {
  const args = textArguments(documented('WebSocketServer'))
  const { port = '', cookies, send, stop } = await startExample('websocket', server.socket, args)
  const admin = adminForThisTest(server.socket)
  const loggedIn = async () => {
    cookies.clear()
    await send('POST', '/login')
    return { cookie: `__Host-onetrip=${cookies.get('__Host-onetrip')}` }
  }
  const other = await loggedIn()
  const { closed: otherClosed } = await open(port, other)
  const own = await loggedIn()
  const { closed } = await open(port, own)
  const second = await open(port, own)

  await send('POST', '/logout')
  await Promise.all([closed, second.closed])
  expect(await Promise.race([otherClosed, 'open'])).toBe('open')
  await expect(open(port, own)).rejects.toThrow()
  await expect(open(port, {})).rejects.toThrow()
  const crossSite = { ...other, origin: 'https://evil.example' }
  await expect(open(port, crossSite)).rejects.toThrow()

  // The session ends while nobody is subscribed.
  await admin.client('PAUSE', 1_000, 'ALL')
  await admin.client('KILL', 'TYPE', 'PUBSUB')
  await admin.hdel('login:', idOf(other.cookie.slice('__Host-onetrip='.length)))
  await otherClosed
  await stop()
})
