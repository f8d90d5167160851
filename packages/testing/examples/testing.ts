import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fastifySessions } from '@onetrip/session-store/fastify'
import { createTestStore } from '@onetrip/testing'
import Fastify from 'fastify'

const { store, clock, failNext } = createTestStore({ idleSeconds: 3600 })
const app = Fastify() // yours: a function that takes the store and returns the application
await app.register(fastifySessions, { store })
app.get('/me', ({ session }) => session.check())

const statusOfMe = async (token: string) => {
  const headers = { authorization: `Bearer ${token}` }
  return (await app.inject({ url: '/me', headers })).statusCode
}

test('an hour without a request ends the session', async () => {
  const { token } = await store.login('ada')
  assert.equal(await statusOfMe(token), 200)
  clock.pass(3601)
  assert.equal(await statusOfMe(token), 401)
})

test('without Redis, the response is 503', async () => {
  const { token } = await store.login('ada')
  failNext('not sent')
  assert.equal(await statusOfMe(token), 503)
  assert.equal(await statusOfMe(token), 200)
})
