import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { Client, countOf } from './client.ts'
import { createStack, type Stack } from './stack.ts'

const profile = { COMPOSE_PROFILES: 'cluster' }
const nodes = ['redis-1', 'redis-2', 'redis-3', 'redis-4', 'redis-5', 'redis-6']

let stack: Stack

beforeAll(async () => {
  stack = await createStack(inject('compose'))
  await stack.up(profile)
})

afterAll(async () => {
  expect(await stack.down()).toEqual([])
})

const roleOf = async (node: string) =>
  /role:(\w+)/.exec(await stack.redisCli(node, 'operator', 'INFO', 'replication'))?.[1]

/** Logs in `count` users; each views the item once. */
async function usersView(count: number, item: string): Promise<Client[]> {
  const names = Array.from({ length: count }, (_, index) => `${item}-${index}`)
  return await Promise.all(
    names.map(async (name) => {
      const client = await Client.logIn(stack.urls.cluster, name)
      expect(await client.view(item)).toMatchObject({ status: 200 })
      return client
    }),
  )
}

test('has three primaries and three replicas, and an API that keeps sessions on all primaries', async () => {
  await usersView(20, 'tea')
  expect(await countOf(stack.urls.cluster, 'tea')).toBe(20)
  const roles = await Promise.all(nodes.map(roleOf))
  expect(roles).toEqual(['master', 'master', 'master', 'slave', 'slave', 'slave'])
  expect(await stack.redisCli('redis-1', 'operator', 'CONFIG', 'GET', 'masterauth')).toContain(
    'NOPERM',
  )
  for (const node of nodes.slice(0, 3)) {
    const keys = Number(await stack.redisCli(node, 'operator', 'DBSIZE'))
    expect(keys, node).toBeGreaterThan(0)
  }
})

test('when a primary is killed, its replica takes over; started again, it becomes a replica', async () => {
  const clients = await usersView(20, 'coffee')
  await stack.compose(['kill', 'redis-1'], profile)
  await stack.until('served again', async () => {
    const answers = await Promise.all(clients.map((client) => client.view('coffee')))
    const failed = answers.filter(({ status }) => status !== 200)
    return failed.length === 0 ? undefined : JSON.stringify(failed[0]?.body)
  })
  expect(await roleOf('redis-4')).toBe('master')
  await stack.up(profile)
  expect(await roleOf('redis-1')).toBe('slave')
})

test('keeps its data and roles when it is taken down and started with other addresses', async () => {
  const [client] = (await usersView(1, 'milk')) as [Client]
  const profiles = ['--profile', 'cluster']
  await stack.compose([...profiles, 'down'])
  // Docker assigns addresses in the order of the starts.
  await stack.compose([...profiles, 'up', '-d', '--no-build', '--no-deps', ...nodes.toReversed()])
  await stack.up(profile)
  expect(await client.view('milk')).toMatchObject({ status: 200, body: { views: 2 } })
  expect(await roleOf('redis-4')).toBe('master')
})
