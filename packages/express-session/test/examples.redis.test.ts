import { fileURLToPath } from 'node:url'
import { startProgram } from '@onetrip/stack/program.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import { SECRET } from './fixture.ts'

const server = redisOfThisFile()

test.each(['express.ts', 'fastify.ts'])('%s keeps the data of a session', async (file) => {
  const program = await startProgram({
    name: file,
    command: process.execPath,
    args: [fileURLToPath(new URL(`../examples/${file}`, import.meta.url))],
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      REDIS_URL: `unix://${server.socket}`,
      SESSION_SECRET: SECRET,
    },
    ready: /127\.0\.0\.1|port: \d+/,
    readyTimeoutMs: 100_000,
  })
  onTestFinished(() => program.stop().then(() => undefined))
  const port = /(?:127\.0\.0\.1:|port: )(\d+)/.exec(program.lastLines.join('\n'))?.[1]
  let cookie = ''
  for (const [method, path, theme] of [
    ['GET', '/theme', null],
    ['POST', '/theme/dark', 'dark'],
    ['GET', '/theme', 'dark'],
  ] as const) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers: { cookie } })
    expect(await response.json()).toEqual({ theme })
    const [given] = response.headers.getSetCookie()
    cookie = given?.split(';')[0] ?? cookie
  }
  expect(await program.stop()).toEqual({ code: 0, signal: null })
})
