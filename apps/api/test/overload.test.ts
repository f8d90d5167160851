import Fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { errorsPlugin } from '../src/plugins/errors.ts'
import { overloadPlugin } from '../src/plugins/overload.ts'

const MAX_DELAY_MS = 500

async function app(maxEventLoopDelayMs: number) {
  const app = Fastify()
  await app.register(errorsPlugin)
  await app.register(overloadPlugin, { maxEventLoopDelayMs })
  app.get('/', () => 'here')
  await app.ready()
  onTestFinished(() => app.close())
  return async () => (await app.inject('/')).statusCode
}

function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

test('requests read after a block, before any timer runs, are rejected too', async () => {
  const request = await app(MAX_DELAY_MS)
  await expect.poll(request).toBe(200)
  standStill(2 * MAX_DELAY_MS)
  expect(await request()).toBe(503)
  await expect.poll(request).toBe(200)
})

test('without a limit no request is rejected', async () => {
  const request = await app(0)
  standStill(MAX_DELAY_MS)
  expect(await request()).toBe(200)
})
