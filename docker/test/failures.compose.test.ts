import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { Client, countOf, Viewers } from './client.ts'
import { outputOf, run } from './command.ts'
import { createStack, type Stack } from './stack.ts'

// Runs in a container of an API. Prints the first status of /readyz that is not 200.
const WATCH_READINESS = `
import fs from 'node:fs'
const ask = async () => (await fetch('http://127.0.0.1:3000/readyz')).status
let status = await ask()
fs.writeFileSync('/tmp/watched', '')
while (status === 200) {
  await new Promise((resolve) => setTimeout(resolve, 20))
  status = await ask()
}
console.log(status)`

let stack: Stack

beforeAll(async () => {
  stack = await createStack(inject('compose'))
  await stack.up()
})

afterAll(async () => {
  expect(await stack.down()).toEqual([])
})

async function viewersOf(item: string, count = 8): Promise<Viewers> {
  const clients = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      Client.logIn(stack.urls.pooled, `${item}-${index}`),
    ),
  )
  const viewers = new Viewers(clients, item)
  onTestFinished(() => viewers.stop())
  return viewers
}

/** Expects that every acknowledged view was counted, and none twice. */
async function expectCounted({ item, done, unknown }: Viewers): Promise<void> {
  const count = await countOf(stack.urls.pooled, item)
  expect(count).toBeGreaterThanOrEqual(done)
  expect(count).toBeLessThanOrEqual(done + unknown)
}

/** Kills the Redis process, so that its container crashes and is restarted. */
async function crashRedis(): Promise<void> {
  const { State } = await stack.container('redis')
  await stack.exec('redis', 'kill -KILL $(cat /data/redis.pid)')
  await stack.until('restarted', async () => {
    const now = await stack.container('redis')
    return now.State.StartedAt === State.StartedAt ? now.State.Status : undefined
  })
  await stack.untilHealthy('redis')
}

describe('Redis restarts', () => {
  test('a restart loses nothing, and the APIs reconnect', async () => {
    const viewers = await viewersOf('restarted')
    await viewers.more(200)
    await stack.compose(['restart', 'redis'])
    await viewers.more(200)
    await viewers.stop()
    await expectCounted(viewers)
  })

  test('a killed Redis with appendfsync always loses no acknowledged view', async () => {
    await stack.up({ REDIS_APPENDFSYNC: 'always' })
    const viewers = await viewersOf('synced')
    await viewers.more(200)
    await crashRedis()
    await viewers.more(50)
    await viewers.stop()
    await expectCounted(viewers)
  })
})

/** Pauses the processes of a container. The container stays in the network. */
async function freeze(service: string): Promise<{ thaw(): Promise<void> }> {
  const { Id } = await stack.container(service)
  await outputOf(['docker', 'pause', Id])
  onTestFinished(async () => void (await run(['docker', 'unpause', Id])))
  return { thaw: async () => void (await outputOf(['docker', 'unpause', Id])) }
}

/** Waits for a health check after `since` that failed with `message`; until then, none may succeed. */
async function untilCheckFails(service: string, message: string, since: number): Promise<void> {
  await stack.until('failed', async () => {
    const checks = await stack.checksSince(service, since)
    expect(checks.filter(({ exitCode }) => exitCode === 0)).toEqual([])
    const failed = checks.some(({ output }) => output.includes(message))
    return failed ? undefined : JSON.stringify(checks)
  })
  expect((await stack.container(service)).State.Health?.Status).toBe('starting')
}

async function startedAt(service: string): Promise<number> {
  return Date.parse((await stack.container(service)).State.StartedAt)
}

describe('health checks', () => {
  test('a new Redis is healthy once the running APIs are connected to it', async () => {
    const api = await freeze('api')
    await stack.compose(['restart', 'redis'])
    await untilCheckFails('redis', 'waiting for api', await startedAt('redis'))
    await api.thaw()
    await stack.untilHealthy('redis')
    for (const url of [stack.urls.pooled, stack.urls.naive]) await Client.logIn(url, 'early')
  })

  test('a new API is healthy once the proxy sends requests to it', async () => {
    const proxy = await freeze('proxy')
    const { Id } = await stack.container('api')
    await outputOf(['docker', 'restart', Id])
    await untilCheckFails('api', 'http://proxy:3000', await startedAt('api'))
    await proxy.thaw()
    await stack.untilHealthy('api')
    await Client.logIn(stack.urls.pooled, 'early')
  })

  test('without Redis, APIs and proxy are healthy but not ready', async () => {
    await stack.compose(['stop', 'redis'])
    const since = Date.now()
    for (const service of ['api', 'api-naive', 'proxy']) {
      await stack.until('three checks', async () => {
        const latest = (await stack.checksSince(service, since)).slice(-3)
        const fine = latest.length === 3 && latest.every(({ exitCode }) => exitCode === 0)
        return fine ? undefined : JSON.stringify(latest)
      })
      expect((await stack.container(service)).State.Health?.Status).toBe('healthy')
    }
    for (const url of [stack.urls.pooled, stack.urls.naive]) {
      expect((await fetch(`${url}/readyz`)).status).toBe(503)
    }
    await stack.compose(['start', 'redis'])
    await stack.untilHealthy()
    for (const url of [stack.urls.pooled, stack.urls.naive]) await Client.logIn(url, 'late')
  })
})

describe('--scale api=3', () => {
  beforeAll(async () => {
    await stack.up({}, '--scale', 'api=3')
  })

  test('all three get requests through one port', async () => {
    const viewers = await viewersOf('scaled')
    await viewers.more(300)
    await viewers.stop()
    const apis = await stack.containers('api')
    expect(apis).toHaveLength(3)
    const script = `fetch('http://127.0.0.1:3000/metrics').then(a=>a.text()).then(t=>console.log(/^onetrip_store_commands_total.* (\\d+)$/m.exec(t)[1]))`
    for (const { Id, Name } of apis) {
      expect(Number(await stack.inContainer(Id, ['node', '-e', script])), Name).toBeGreaterThan(0)
    }
    expect(viewers.unknown).toBe(0)
    await expectCounted(viewers)
  })

  test('when one is killed, the others continue, no view is counted twice, and it restarts', async () => {
    const [victim] = await stack.containers('api')
    const viewers = await viewersOf('killed')
    await viewers.more(100)
    await stack.inContainer(victim?.Id ?? '', ['sh', '-c', 'kill -KILL $(pidof node)'])
    await viewers.more(300)
    await viewers.stop()
    // At most the one request in flight of each viewer was lost.
    expect(viewers.unknown).toBeLessThanOrEqual(8)
    await expectCounted(viewers)
    await stack.untilHealthy('api')
    expect(await stack.containers('api')).toHaveLength(3)
  })

  test('when one is stopped, /readyz returns 503 first, and no request fails', async () => {
    const [leaving] = await stack.containers('api')
    const id = leaving?.Id ?? ''
    const viewers = await viewersOf('stopped')
    await viewers.more(100)
    const stop = async () => {
      await stack.until('watched', async () => {
        const { code } = await run(['docker', 'exec', id, 'test', '-e', '/tmp/watched'])
        return code === 0 ? undefined : 'the script has not started'
      })
      await outputOf(['docker', 'stop', '-t', '20', id])
    }
    const watch = ['node', '--input-type=module', '-e', WATCH_READINESS]
    const [answer] = await Promise.all([stack.inContainer(id, watch), stop()])
    expect(answer.trim()).toBe('503')
    await viewers.more(100)
    await viewers.stop()
    expect({ unknown: viewers.unknown, refused: viewers.refused }).toEqual({
      unknown: 0,
      refused: 0,
    })
    await expectCounted(viewers)
    const stopped = (await stack.containers('api')).find(({ Id }) => Id === id)
    expect(stopped?.State).toMatchObject({ Status: 'exited', ExitCode: 0 })
  })
})
