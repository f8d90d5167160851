import { type TestRedis, testRedis } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { partitionedKeys } from '../src/cluster/index.ts'
import { articleKeys, type SessionStore } from '../src/core/index.ts'
import { bridgeStores, type MigrationSide, readySides } from '../src/migration/index.ts'
import { newStore, tokens } from './fixture.ts'
import { Clock, withAnyClock } from './retention-fixture.ts'

export const from = articleKeys
export const to = partitionedKeys(8)

/** The sides of a migration, on two Redis servers that are emptied before each test, and stores of both. */
export function migrationOfThisFile() {
  const servers: TestRedis[] = []
  const admins: Redis[] = []

  beforeAll(async () => {
    servers.push(...(await Promise.all([testRedis(), testRedis()])))
    admins.push(...servers.map(({ socket }) => new Redis(socket)))
    for (const admin of admins) admin.on('error', () => {}) // of a server that a test has stopped
  })
  beforeEach(() => Promise.all(admins.map((admin) => admin.flushall())))
  afterAll(async () => {
    for (const admin of admins) admin.disconnect()
    await Promise.all(servers.map((server) => server.stop()))
  })

  const clock = new Clock()

  /** A store of one side, closed when the test ends. */
  function storeOf(side: 'from' | 'to'): SessionStore {
    const server = servers[side === 'from' ? 0 : 1]
    const keys = { from, to }[side]
    const url = `unix://${server?.socket}`
    return withAnyClock(newStore({ url, keys, tokens: { ...tokens, clock: () => clock.ms } }))
  }

  return {
    clock,
    get servers() {
      return servers
    },
    /** Connections to the source and the target. */
    get admins() {
      return admins as [Redis, Redis]
    },
    storeOf,
    /** The sides as `migrate` uses them. */
    async sides() {
      const stores = { from: storeOf('from'), to: storeOf('to') }
      const sides = { from: { store: stores.from, keys: from }, to: { store: stores.to, keys: to } }
      await readySides(sides)
      return sides
    },
    /** A bridge as in a process that serves. */
    async bridge(home: 'source' | 'target'): Promise<SessionStore> {
      const bridge = bridgeStores({
        from: { store: storeOf('from'), keys: from },
        to: { store: storeOf('to'), keys: to },
        home,
        clock: () => clock.ms,
      })
      await bridge.ready()
      return bridge
    },
  }
}

/** The error that stands for a killed process. */
export const killed = new Error('killed')

/**
 * The side in a process that is killed after the given number of operations of both sides. `sent`: the last operation was
 * executed, and its replies were lost.
 */
export function killedAfter(operations: number, sent: boolean) {
  let left = operations
  return <Side extends MigrationSide>({ store, keys }: Side): MigrationSide => ({
    keys,
    store: {
      async run(operation) {
        left--
        if (left < -1 || (left === -1 && !sent)) throw killed
        const result = await store.run(operation)
        if (left < 0) throw killed
        return result
      },
    },
  })
}
