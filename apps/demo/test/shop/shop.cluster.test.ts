import { createSessionStore } from '@onetrip/session-store'
import { clusterSender, createCluster, partitionedKeys } from '@onetrip/session-store/cluster'
import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import type { InjectOptions } from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { buildApp } from '../../../api/src/app.ts'
import { trustingAuthenticator } from '../../../api/src/authenticator.ts'
import { demoApplication } from '../../src/application.ts'
import { bearer, login, optionsOn, secret } from '../support.ts'

const cluster = clusterOfThisFile()

test.each(['sequential', 'batch'] as const)(
  '%s: the shop and facts about the nodes of a Redis Cluster',
  async (strategy) => {
    const nodes = cluster.nodes.map(({ address }) => address)
    const client = createCluster(cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
    onTestFinished(() => client.disconnect())
    const store = createSessionStore({
      sender: clusterSender({ client, strategy }),
      keys: partitionedKeys(),
      tokens: { secrets: [secret] },
      janitor: 'elsewhere',
      deadlineMs: 30_000,
    })
    const app = await buildApp({
      store,
      secureCookie: true,
      transport: 'tcp',
      ...demoApplication({ ...optionsOn(''), redis: { cluster: { nodes } }, cacheEntries: 0 }),
      authenticator: trustingAuthenticator('test'),
    })
    onTestFinished(async () => {
      await app.close()
      await store.close()
    })
    await store.ready()
    const users = Array.from({ length: 6 }, (_, index) => `${strategy}-${index}`)
    const tokens = await Promise.all(users.map((user) => login(app, user)))
    const ask = async (token: string, request: InjectOptions) => {
      const answer = await app.inject({ ...request, headers: bearer(token) })
      return { status: answer.statusCode, ...answer.json() }
    }
    // No hash tags: no key has to share the slot of another one.
    for (const item of ['book', '{a}', '}{', 'pen', 'cup']) {
      const url = `/items/${encodeURIComponent(`${strategy} ${item}`)}`
      const [first = ''] = tokens
      const stock: InjectOptions = { method: 'PUT', url: `${url}/stock`, payload: { pieces: 3 } }
      expect(await ask(first, stock)).toMatchObject({ status: 200, left: 3 })
      const purchase: InjectOptions = { method: 'POST', url: `${url}/purchases` }
      const bought = await Promise.all(tokens.map((token) => ask(token, purchase)))
      const statuses = bought.map(({ status }) => status).toSorted()
      expect(statuses).toEqual([200, 200, 200, 409, 409, 409])
      expect(await ask(first, { url: `${url}/stock` })).toMatchObject({ left: 0, sold: 3 })
      const view: InjectOptions = { method: 'POST', url: `${url}/viewers` }
      await Promise.all(tokens.map((token) => ask(token, view)))
      expect(await ask(first, { url: `${url}/viewers` })).toMatchObject({ viewers: 6 })
    }
    for (const token of tokens) {
      await ask(token, { method: 'POST', url: '/feed', payload: { text: 'hello' } })
      expect(await ask(token, { url: '/me/feed' })).toMatchObject({ entries: [{ id: 1 }] })
    }
    const [token = ''] = tokens
    await expect.poll(() => ask(token, { url: '/me/risk' })).toMatchObject({ logins: 1 })
    const facts = await ask(token, { url: '/demo/server' })
    expect(facts).toMatchObject({ topology: 'cluster', unavailable: [] })
    expect(facts.nodes.toSorted()).toEqual(nodes.toSorted())
    const feed = await ask(token, { url: '/feed?limit=6' })
    expect(feed.entries.map(({ user }: { user: string }) => user)).toEqual(users.toReversed())
  },
)
