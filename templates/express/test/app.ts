import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createTestStore } from '@onetrip/testing'

process.env.ADA_PASSWORD = 'lovelace'
const { createApp } = await import('../src/app.ts')

test('a session lasts from login to logout', async (t) => {
  const server = (await createApp(createTestStore().store)).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const post = async (path: string, cookie = '', body = {}) => {
    const { status, headers } = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { cookie, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { status, cookie: String(headers.get('set-cookie')).split(';')[0] }
  }
  const user = { user: 'ada', password: 'lovelace' }
  assert.equal((await post('/login', '', { ...user, password: 'byron' })).status, 401)
  const { status, cookie } = await post('/login', '', user)
  assert.equal(status, 200)
  assert.equal((await post('/views/book', cookie)).status, 200)
  assert.equal((await post('/logout', cookie)).status, 200)
  assert.equal((await post('/views/book', cookie)).status, 401)
})
