import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestStore } from '@onetrip/testing'

process.env.ADA_PASSWORD = 'lovelace'
const { createApp } = await import('../src/app.ts')

test('a session lasts from login to logout', async () => {
  const app = await createApp(createTestStore().store)
  const post = async (url: string, cookie = '', payload = {}) => {
    const { statusCode, headers } = await app.inject({
      method: 'POST',
      url,
      headers: { cookie },
      payload,
    })
    return { statusCode, cookie: String(headers['set-cookie']).split(';')[0] }
  }
  const user = { user: 'ada', password: 'lovelace' }
  assert.equal((await post('/login', '', { ...user, password: 'byron' })).statusCode, 401)
  const { statusCode, cookie } = await post('/login', '', user)
  assert.equal(statusCode, 200)
  assert.equal((await post('/views/book', cookie)).statusCode, 200)
  assert.equal((await post('/logout', cookie)).statusCode, 200)
  assert.equal((await post('/views/book', cookie)).statusCode, 401)
  await app.close()
})
