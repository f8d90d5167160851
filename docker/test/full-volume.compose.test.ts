import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { Client, countOf } from './client.ts'
import { createStack, type Stack } from './stack.ts'

// A small volume in memory. uid and gid are those of Redis in its image.
const SMALL_VOLUME = `
volumes:
  redis-data:
    driver_opts: { type: tmpfs, device: tmpfs, o: 'size=8m,uid=999,gid=1000' }
`

let stack: Stack

beforeAll(async () => {
  stack = await createStack(inject('compose'), SMALL_VOLUME)
  await stack.up()
})

afterAll(async () => {
  expect(await stack.down()).toEqual([])
})

test('with a full volume, views are rejected, reads work, and Redis recovers without a restart', async () => {
  const client = await Client.logIn(stack.urls.pooled, 'ada')
  expect(await client.view('before')).toMatchObject({ status: 200 })

  await stack.exec('redis', 'cat /dev/zero >/data/filler')
  await stack.until('full', async () => {
    const { status } = await client.view('meanwhile')
    return status === 503 ? undefined : `POST /views returned ${status}`
  })
  expect(await client.views()).toContain('before')
  // The health check fails, too: Redis answers PING with MISCONF.
  await stack.until('unhealthy', async () => {
    const { State } = await stack.container('redis')
    return State.Health?.Status === 'unhealthy' ? undefined : State.Health?.Status
  })
  // The API reads a key, and another API could not write either.
  expect((await fetch(`${stack.urls.pooled}/readyz`)).status).toBe(200)
  expect(await countOf(stack.urls.pooled, 'before')).toBe(1)

  await stack.exec('redis', 'rm /data/filler')
  await stack.untilHealthy()
  await stack.until('writable', async () => {
    const { status } = await client.view('after')
    return status === 200 ? undefined : `POST /views returned ${status}`
  })
  expect(await countOf(stack.urls.pooled, 'before')).toBe(1)
  expect(await countOf(stack.urls.pooled, 'after')).toBe(1)
})
