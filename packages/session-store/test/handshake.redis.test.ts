import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { sidecarForThisTest } from '@onetrip/stack/testing/sidecar.ts'
import { expect, onTestFinished, test } from 'vitest'
import { longLivedConnection, type SessionStore } from '../src/index.ts'
import { bulk, fakeServer } from './fake-server.ts'
import { newStore } from './fixture.ts'

const server = redisOfThisFile()

const login = (store: SessionStore) =>
  store.login('ada').then(
    () => 'ok',
    ({ code, cause }) => ({ code, reason: cause?.message }),
  )

const noReply = {
  code: 'ONETRIP_NOT_SENT',
  reason: expect.stringContaining('no reply during the handshake'),
}

test('a connection is reopened if its handshake, with a user and a database, gets no reply', async () => {
  await server.redis.call('ACL', 'SETUSER', 'shop', 'on', '>pw', '~*', '&*', '+@all')
  // It accepts connections and passes nothing.
  const sidecar = await sidecarForThisTest(server.socket)
  const redis = `redis://shop:pw@127.0.0.1:${sidecar.port}/5`
  const store = newStore({ redis, poolSize: 2, deadlineMs: 200 })
  await store.ready()
  sidecar.breakDown()
  await sidecar.untilHanging(2)
  await expect.poll(() => login(store)).toEqual(noReply)
  sidecar.mend()
  await expect.poll(() => login(store)).toBe('ok')
})

test('a connection is kept while Redis loads its data', async () => {
  let asked = 0
  const { port, sockets } = await fakeServer((command) => {
    if (!command.startsWith('info')) return '+OK\r\n'
    const loading = asked++ < 2
    return bulk(`loading:${Number(loading)}\r\nloading_eta_seconds:1\r\n`)
  })
  const redis = longLivedConnection(`redis://127.0.0.1:${port}`, 20)
  onTestFinished(() => redis.disconnect())
  await redis.connect()
  expect(asked).toBe(3)
  expect(sockets.size).toBe(1)
})
