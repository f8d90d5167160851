import { describe, expect, test } from 'vitest'
import { processesOf, temporaryFolder } from '../src/testing/folders.ts'
import { runStart } from '../src/testing/programs.ts'
import {
  clusterPorts,
  clusterStarted,
  expectNothingLeft,
  portOptions,
  refused,
  type Started,
  sh,
} from './support/start.ts'

const nodesOf = ({ record }: Started) => record.redis.nodes ?? []

async function login(url: string | undefined): Promise<string> {
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(`${url}/login`, { method: 'POST', headers, body: '{"user":"ada"}' })
  return ((await answer.json()) as { token: string }).token
}

const view = (url: string | undefined, token: string, item = 'tea') =>
  fetch(`${url}/views`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ item }),
  })

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
    const token = await login(pooled?.url)
    expect(await (await view(naive?.url, token)).json()).toMatchObject({ views: 2 })

    stack.signal('SIGINT')
    expect(await stack.exited).toEqual({ code: 0, signal: null })
    await expectNothingLeft(stack)

    const again = await clusterStarted(stack)
    expect(await (await view(again.record.apis[0]?.url, token)).json()).toMatchObject({ views: 3 })
    again.signal('SIGTERM')
    expect(await again.exited).toEqual({ code: 0, signal: null })
    await expectNothingLeft(again)
  })

  test('reports a killed primary; its replica takes over, and all sessions are available', async () => {
    const stack = await clusterStarted()
    const url = stack.record.apis[0]?.url
    const tokens = await Promise.all(Array.from({ length: 20 }, () => login(url)))
    const [lost] = nodesOf(stack)
    const [, , first = 0] = stack.ports
    process.kill(lost?.pid ?? 0, 'SIGKILL')
    const output = () => stack.output.join('\n')
    await expect
      .poll(output)
      .toContain(`The Redis node 127.0.0.1:${first} exited unexpectedly (SIGKILL).`)
    await expect.poll(output).toContain(`Its replica 127.0.0.1:${first + 3} takes over.`)
    await expect.poll(output).toContain(`127.0.0.1:${first + 3} has taken over.`)
    for (const api of stack.record.apis) {
      for (const token of tokens) {
        await expect.poll(async () => (await view(api.url, token)).status).toBe(200)
      }
    }
    // The loss of another primary's replica does not affect requests.
    process.kill(nodesOf(stack)[4]?.pid ?? 0, 'SIGKILL')
    await expect.poll(output).toContain('It was a replica; its primary continues without it.')

    stack.signal('SIGINT')
    expect(await stack.exited).toEqual({ code: 0, signal: null })
    await expectNothingLeft(stack)
    // The next start has all six nodes, the former primary as a replica.
    const again = await clusterStarted(stack)
    expect(nodesOf(again)[0]?.replicaOf).toBe(`127.0.0.1:${first + 3}`)
    expect((await view(again.record.apis[0]?.url, tokens[0] ?? '')).status).toBe(200)
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
    expect(
      (await view(stack.record.apis[0]?.url, await login(stack.record.apis[0]?.url))).status,
    ).toBe(200)
  })

  test('exits if an API is killed', async () => {
    const stack = await clusterStarted()
    process.kill(stack.record.apis[1]?.pid ?? 0, 'SIGKILL')
    expect(await stack.exited).toEqual({ code: 1, signal: null })
    expect(stack.output.join('\n')).toContain('the naive API exited unexpectedly (SIGKILL)')
    await expectNothingLeft(stack)
  })

  test('exits if all nodes are killed', async () => {
    const stack = await clusterStarted()
    for (const { pid } of nodesOf(stack)) process.kill(pid, 'SIGKILL')
    expect(await stack.exited).toEqual({ code: 1, signal: null })
    await expectNothingLeft(stack)
  })

  test('rejects a second start; after a kill, its programs exit', async () => {
    const stack = await clusterStarted()
    const output = await refused(/kill/, {}, stack, ['--cluster'])
    expect(output.join('\n')).toContain(`kill ${stack.pid}`)
    stack.signal('SIGKILL')
    await stack.exited
    await expect.poll(() => processesOf(stack.state)).toEqual([])
  })
})
