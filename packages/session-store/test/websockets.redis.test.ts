import { once } from 'node:events'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { io } from 'socket.io-client'
import { describe, expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { startExample } from './example.ts'
import { adminForThisTest, gone, idOf, outcomeOf, readyStore, tokens } from './fixture.ts'

const server = redisOfThisFile()

interface Opened {
  /** Resolves when the server has closed the connection. */
  closed: Promise<unknown>
}

type Open = (port: string, headers: Record<string, string>) => Promise<Opened>

const openWebSocket =
  (path: string): Open =>
  async (port, headers) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers })
    onTestFinished(() => socket.terminate())
    await once(socket, 'message')
    return { closed: once(socket, 'close') }
  }

const openSocketIo: Open = async (port, extraHeaders) => {
  const options = { extraHeaders, transports: ['websocket'], reconnection: false, forceNew: true }
  const socket = io(`http://127.0.0.1:${port}`, options)
  onTestFinished(() => void socket.disconnect())
  await new Promise((resolve, reject) => socket.on('welcome', resolve).on('connect_error', reject))
  return { closed: new Promise((resolve) => socket.on('disconnect', resolve)) }
}

describe.each<[string, Open]>([
  ['websocket-fastify.ts', openWebSocket('/live')],
  ['websocket.ts', openWebSocket('/')],
  ['socket-io.ts', openSocketIo],
])('%s', (file, open) => {
  test('a logout closes the WebSockets of its session, also if the subscription was cut', async () => {
    const { port = '', cookies, send, stop } = await startExample(file, server.socket)
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
})

test('watchSession calls back once, at the end of the session or of the token', async () => {
  let now = Date.now()
  const store = await readyStore({
    url: `unix://${server.socket}`,
    tokens: { ...tokens, lifetimeSeconds: 60, clock: () => now },
  })
  const ends: string[] = []
  const watch = (token: string, name: string) => store.watchSession(token, () => ends.push(name))
  const { token } = await store.login('ada')
  await watch(token, 'logout')
  const stop = await watch(token, 'stopped')
  stop()
  await store.logout(token)
  await expect.poll(() => ends).toEqual(['logout'])
  expect(await outcomeOf(watch(token, 'ended'))).toBe(gone.code)
  expect(await outcomeOf(watch('no token', 'none'))).toBe('ONETRIP_INVALID_TOKEN')

  const expiring = await store.login('ada')
  now += 59_990
  await watch(expiring.token, 'expired')
  now += 10
  await expect.poll(() => ends).toEqual(['logout', 'expired'])
  await store.logout((await store.login('ada')).token)
  const racing = await store.login('ada')
  const [outcome] = await Promise.all([
    outcomeOf(watch(racing.token, 'race')),
    store.logout(racing.token),
  ])
  // Either the check notices the end, or the message arrives.
  await expect.poll(() => outcome === gone.code || ends.includes('race')).toBe(true)
})
