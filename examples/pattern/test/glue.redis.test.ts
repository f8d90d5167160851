import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import * as withExpress from '../express.ts'
import * as withFastify from '../fastify.ts'

const server = redisOfThisFile()

const authenticate = async (body: unknown) => (body as { user: string }).user

async function fastify(): Promise<string> {
  const app = await withFastify.openApp(server.socket, authenticate)
  onTestFinished(() => app.close())
  return await app.listen({ port: 0, host: '127.0.0.1' })
}

async function express(): Promise<string> {
  const { app, close } = await withExpress.openApp(server.socket, authenticate)
  const http = createServer(app).listen(0, '127.0.0.1')
  onTestFinished(async () => {
    http.close()
    await close()
  })
  await once(http, 'listening')
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`
}

test.for([
  ['fastify.ts', fastify],
  ['express.ts', express],
] as const)('%s: a login, a view, a logout, and then 401', async ([, start]) => {
  const base = await start()
  const post = (path: string, headers: Record<string, string>, body?: string) =>
    fetch(base + path, { method: 'POST', headers, ...(body && { body }) })
  const json = { 'content-type': 'application/json' }
  const login = await post('/login', json, '{"user":"ada"}')
  expect(login.status).toBe(204)
  const [set = ''] = login.headers.getSetCookie()
  expect(set.toLowerCase()).toMatch(/^__host-session=.+path=\/.*httponly/)
  const cookie = `theme=dark; ${set.split(';', 1)[0]}`
  const view = async () => await post('/views/book', { cookie })
  expect(await (await view()).json()).toMatchObject({ user: 'ada', views: expect.any(Number) })
  expect((await post('/views/book', {})).status).toBe(401)
  expect(await (await post('/logout', { cookie })).json()).toEqual({ ended: true })
  expect((await view()).status).toBe(401)
})
