import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import { adminForThisTest, newStore, outcomeOf } from './fixture.ts'

/** Two servers behind an address that stays the same, as of a Kubernetes service. The first one becomes a replica. */
async function failover() {
  const servers = await Promise.all([redisForThisTest(), redisForThisTest()])
  let target = servers[0].socket
  const proxy = createServer((client) => {
    const server = connect(target)
    for (const socket of [client, server]) socket.on('error', () => undefined)
    client.pipe(server).pipe(client)
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  const { port } = proxy.address() as AddressInfo
  const redis = `redis://127.0.0.1:${port}`
  const stores = [1, 2].map((poolSize) => newStore({ redis, poolSize, deadlineMs: 2_000 }))
  onTestFinished(async () => {
    await Promise.all(stores.map((store) => store.close()))
    proxy.close()
  })
  return {
    stores,
    demote: () => adminForThisTest(servers[0].socket).replicaof('127.0.0.1', 1),
    promote() {
      target = servers[1].socket
    },
    /** The number of logins that the second server has. */
    logins: () => adminForThisTest(servers[1].socket).hlen('login:'),
  }
}

test('a connection to a demoted primary is left after its replies are read; nothing is resent', async () => {
  const { stores, demote, promote, logins } = await failover()
  for (const store of stores) {
    await store.ready()
    await expect.poll(() => store.info.ready).toBe(store.info.connections)
  }
  await demote()
  promote()
  let acknowledged = 0
  for (const store of stores) {
    const together = await Promise.all([store.login('ada'), store.popularItems()].map(outcomeOf))
    expect(together).toEqual(['ONETRIP_REFUSED', 'ok'])
    const outcomes: string[] = []
    const login = async () => {
      const outcome = await outcomeOf(store.login('ada'))
      if (outcome === 'ok') acknowledged++
      outcomes.push(outcome)
      return outcomes.slice(-10)
    }
    await expect.poll(login).toEqual(new Array(10).fill('ok'))
    expect(new Set(outcomes)).not.toContain('ONETRIP_OUTCOME_UNKNOWN')
  }
  expect(await logins()).toBe(acknowledged)
})

test('ready waits while Redis is a replica, and says so', async () => {
  const { stores, demote, promote } = await failover()
  const [store = expect.fail(), other = expect.fail()] = stores
  await demote()
  await expect.poll(() => outcomeOf(store.popularItems())).toBe('ok') // it is connected
  await expect(store.ready(1_000)).rejects.toMatchObject({
    code: 'ONETRIP_NOT_SENT',
    message: 'not sent to Redis: Redis is a replica after 1 s',
  })
  const isReady = other.ready(20_000)
  await expect.poll(() => other.info.ready).toBeGreaterThan(0)
  promote()
  await isReady
})
