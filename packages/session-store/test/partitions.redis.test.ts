import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import { partitionedKeys } from '../src/cluster/index.ts'
import {
  articleKeys,
  createSessionStore,
  type SessionStoreOptions,
  type StoreWarning,
  warningChannel,
} from '../src/core/index.ts'
import { migrate, readySides } from '../src/migration/index.ts'
import { expressSessions } from '../src/web/express.ts'

const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }
const server = redisOfThisFile()
const url = () => `unix://${server.socket}`

function storeWith(partitions: number, options: Partial<SessionStoreOptions> = {}) {
  const keys = partitionedKeys(partitions)
  const store = createSessionStore({ url: url(), keys, tokens, janitor: 'elsewhere', ...options })
  onTestFinished(() => store.close())
  return store
}

const recorded = () => server.redis.hget('janitor:tasks', 'partitions')

const refusal = (own: number, other: number) => ({
  code: 'ONETRIP_INVALID_INPUT',
  message: `this process is set to ${own} partitions, but the first start recorded ${other} (field partitions of janitor:tasks): set ${other} in every process, as partitionedKeys(${other}) or REDIS_PARTITIONS=${other}; if the first start had the wrong number, stop all processes with that number, run HDEL janitor:tasks partitions, and start with the right number`,
})

test('the first start records the number of partitions, and starts with another number are refused', async () => {
  await storeWith(8).ready()
  expect(await recorded()).toBe('8')
  await storeWith(8).ready()
  await expect(storeWith(16).ready()).rejects.toMatchObject(refusal(16, 8))
  await storeWith(16, { prefix: 'other:' }).ready()
})

test('processes that start at the same time agree on one number', async () => {
  const numbers = [8, 16, 8, 16, 8, 16]
  const starts = await Promise.allSettled(numbers.map((number) => storeWith(number).ready()))
  const [one, ...others] = new Set(
    numbers.filter((_, index) => starts[index]?.status === 'fulfilled'),
  )
  expect(String(one)).toBe(await recorded())
  expect(others).toEqual([])
})

test('with readOnly, a start compares the number and records nothing', async () => {
  await storeWith(8).ready(1_000, { readOnly: true })
  expect(await server.redis.dbsize()).toBe(0)
  await storeWith(16).ready()
  const check = storeWith(8).ready(1_000, { readOnly: true })
  await expect(check).rejects.toMatchObject(refusal(8, 16))
})

test('with the keys of a single Redis, nothing is recorded', async () => {
  await storeWith(1, { keys: articleKeys }).ready()
  expect(await server.redis.dbsize()).toBe(0)
})

test('the Express middleware does not start with another number', async () => {
  await storeWith(8).ready()
  const start = expressSessions({ url: url(), keys: partitionedKeys(16), tokens })
  await expect(start).rejects.toMatchObject(refusal(16, 8))
})

test('if the number cannot be recorded, a start only warns', async () => {
  const warnings: StoreWarning[] = []
  const onWarning = (warning: unknown) => void warnings.push(warning as StoreWarning)
  warningChannel.subscribe(onWarning)
  onTestFinished(() => void warningChannel.unsubscribe(onWarning))
  await server.redis.call('ACL', 'SETUSER', 'default', '-hsetnx')
  onTestFinished(async () => void (await server.redis.call('ACL', 'SETUSER', 'default', '+@all')))
  await storeWith(8).ready()
  expect(warnings).toEqual([
    {
      code: 'ONETRIP_PARTITIONS',
      message:
        'cannot compare the number of partitions with that of the data in Redis: Redis refused HSETNX (command 1 of 2): NOPERM. Check that every process uses 8',
    },
  ])
})

test('a migration records the number of partitions of its target, and refuses a target with another number', async () => {
  const source = { store: storeWith(1, { keys: articleKeys }), keys: articleKeys }
  const target = (partitions: number) => ({
    store: storeWith(partitions, { url: `${url()}?db=1` }),
    keys: partitionedKeys(partitions),
  })
  const sides = { from: source, to: target(8) }
  await readySides(sides)
  await server.redis.select(1)
  onTestFinished(async () => void (await server.redis.select(0)))
  expect(await server.redis.dbsize()).toBe(0)
  await migrate(sides)
  expect(await recorded()).toBe('8')
  await expect(target(16).store.ready()).rejects.toMatchObject(refusal(16, 8))
  const others = { from: source, to: target(16) }
  await expect(readySides(others)).rejects.toThrow(
    `the target of the migration: ${refusal(16, 8).message}`,
  )
  for (const database of [0, 1]) {
    await server.redis.select(database)
    await server.redis.hdel('janitor:tasks', 'migration')
  }
  await expect(migrate(others)).rejects.toMatchObject(refusal(16, 8))
})
