import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { send } from '../src/testing/audit/client.ts'
import { processesOf, temporaryFolder } from '../src/testing/folders.ts'
import { runStart } from '../src/testing/programs.ts'
import { logIn } from '../src/testing/viewing.ts'
import {
  clusterPorts,
  clusterStarted,
  expectNothingLeft,
  portOptions,
  type Started,
  sh,
} from './support/start.ts'

const nodesOf = ({ record }: Started) => record.redis.nodes ?? []

/** Until the replicas of a node have confirmed all that it has written: a kill would take the rest. */
async function untilReplicated(url = '') {
  await using undo = new AsyncDisposableStack()
  const redis = new Redis(url)
  undo.defer(() => redis.disconnect())
  const offset = async (name: RegExp) => Number(name.exec(await redis.info('replication'))?.[1])
  const written = await offset(/master_repl_offset:(\d+)/)
  await expect.poll(() => offset(/,offset=(\d+)/)).toBeGreaterThanOrEqual(written)
}

const view = (url: string | undefined, token = '') =>
  send<{ views: number }>(`${url}`, { path: '/views', token, body: { item: 'tea' } })

describe('npm start -- --cluster', () => {
  test('runs both APIs on six nodes; sessions survive a restart; Ctrl-C leaves no process or file', async () => {
    const stack = await clusterStarted()
    const [, , first = 0] = stack.ports
    expect(stack.record.redis).toMatchObject({ transport: 'tcp', build: 'patched', pid: null })
    expect(nodesOf(stack).map(({ url, replicaOf }) => [new URL(url).port, replicaOf])).toEqual([
      ...[0, 1, 2].map((index) => [`${first + index}`, null]),
      ...[0, 1, 2].map((index) => [`${first + 3 + index}`, `127.0.0.1:${first + index}`]),
    ])
    const text = stack.output.join('\n')
    expect(text).toContain('a cluster of 3 primaries')
    expect(text).toContain(`127.0.0.1:${first}, replica 127.0.0.1:${first + 3}`)
    expect(stack.output.filter((line) => /^(batch|naive|demo): /.test(line))).toEqual([])
    expect(text).toContain('Forming the cluster …') // it takes longer than two seconds

    const lines = stack.output.filter((line) => line.includes('curl '))
    const [answer = '', popular] = (await sh(lines.join('\n'))).trim().split('\n')
    expect(JSON.parse(answer)).toMatchObject({ user: 'ada', item: 'tea', views: 1 })
    expect(popular).toContain('tea')
    const [pooled, naive] = stack.record.apis
    const [{ token } = {}] = await logIn(`${pooled?.url}`, 1)
    expect(await view(naive?.url, token)).toMatchObject({ body: { views: 2 } })

    stack.signal('SIGINT')
    expect(await stack.exited).toEqual({ code: 0, signal: null })
    await expectNothingLeft(stack)

    const again = await clusterStarted(stack)
    expect(await view(again.record.apis[0]?.url, token)).toMatchObject({ body: { views: 3 } })
    again.signal('SIGTERM')
    expect(await again.exited).toEqual({ code: 0, signal: null })
    await expectNothingLeft(again)
  })

  test('reports a killed primary; its replica takes over, and all sessions are available', async () => {
    const stack = await clusterStarted()
    const url = stack.record.apis[0]?.url
    const viewers = await logIn(`${url}`, 20)
    const [lost] = nodesOf(stack)
    const [, , first = 0] = stack.ports
    const exitOf = (index: number) =>
      `The cluster continues without a node: the Redis node 127.0.0.1:${first + index} exited unexpectedly (SIGKILL).`
    await untilReplicated(lost?.url)
    process.kill(lost?.pid ?? 0, 'SIGKILL')
    const output = () => stack.output.join('\n')
    await expect.poll(output).toContain(exitOf(0))
    for (const api of stack.record.apis) {
      for (const { token } of viewers) {
        await expect.poll(async () => (await view(api.url, token)).answer).toBe('200')
      }
    }
    process.kill(nodesOf(stack)[4]?.pid ?? 0, 'SIGKILL')
    await expect.poll(output).toContain(exitOf(4))

    // Its programs end with it.
    stack.signal('SIGKILL')
    await stack.exited
    await expect.poll(() => processesOf(stack.state)).toEqual([])
    // The next start has all six nodes, the former primary as a replica.
    const again = await clusterStarted(stack)
    expect(nodesOf(again)[0]?.replicaOf).toBe(`127.0.0.1:${first + 3}`)
    expect((await view(again.record.apis[0]?.url, viewers[0]?.token)).answer).toBe('200')
  })

  test('Ctrl-C while the cluster forms leaves no process, and the next start completes the cluster', async () => {
    const places = { state: await temporaryFolder(), ports: await clusterPorts() }
    const args = [...portOptions(places.ports), '--cluster']
    const until = /^Forming the cluster/
    const early = await runStart({ state: places.state, args, until })
    early.signal('SIGINT')
    expect(await early.exited).toEqual({ code: 0, signal: null })
    expect(await processesOf(places.state)).toEqual([])
    const stack = await clusterStarted(places)
    const url = `${stack.record.apis[0]?.url}`
    const [viewer] = await logIn(url, 1)
    expect(await view(url, viewer?.token)).toMatchObject({ body: { views: 1 } })
  })

  test('exits if all nodes are killed', async () => {
    const stack = await clusterStarted()
    for (const { pid } of nodesOf(stack)) process.kill(pid, 'SIGKILL')
    expect(await stack.exited).toEqual({ code: 1, signal: null })
    await expectNothingLeft(stack)
  })
})
