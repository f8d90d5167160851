import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import { apiEnvironment, apiProgram } from './api-process.ts'

const server = redisOfThisFile()

/** Where the API listens, as its log tells. Reads no further. */
async function addressIn(log: Readable): Promise<string> {
  let text = ''
  for (;;) {
    const url = /listening at (http:[^"]+)/.exec(text)?.[1]
    if (url !== undefined) return url
    await once(log, 'readable')
    text += log.read() ?? ''
  }
}

/** Connections to Redis, this test's own included. */
const connections = async () =>
  String(await server.redis.client('LIST'))
    .trim()
    .split('\n').length

/** Their lines are more than a pipe holds. */
const REQUESTS = 1_500
const AT_ONCE = 50

test.each(['has stopped', 'goes during the shutdown'])(
  'SIGTERM: ends although the reader of its log %s',
  async (reader) => {
    const before = await connections()
    const api = spawn(process.execPath, [apiProgram], {
      env: apiEnvironment({ REDIS_URL: `unix://${server.socket}`, LOG_LEVEL: 'debug' }),
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void api.kill('SIGKILL'))
    const ended = once(api, 'exit')
    const url = await addressIn(api.stdout)
    const ask = async () => (await fetch(`${url}/${'nowhere/'.repeat(20)}`)).arrayBuffer()
    for (let asked = 0; asked < REQUESTS; asked += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, ask))
    }
    api.kill('SIGTERM')
    // Then only the log is left to be written.
    await expect.poll(connections).toBe(before)
    if (reader !== 'has stopped') api.stdout.destroy()
    expect(await ended).toEqual([0, null])
  },
)
