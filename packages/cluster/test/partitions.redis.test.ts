import type { SessionStoreOptions } from '@onetrip/session-store'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import { newStore, warningsOfThisTest } from '../../session-store/test/fixture.ts'
import { partitionedKeys } from '../src/index.ts'

const server = redisOfThisFile()

const storeWith = (partitions: number, options: Partial<SessionStoreOptions> = {}) =>
  newStore({ redis: `unix://${server.socket}`, keys: partitionedKeys(partitions), ...options })

const recorded = () => server.redis.hget('janitor:tasks', 'partitions')

const refusal = (own: number, other: number) => ({
  code: 'ONETRIP_INVALID_INPUT',
  message: expect.stringContaining(`${own} partitions, but the first start recorded ${other} `),
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

test('if the number cannot be recorded, a start only warns', async () => {
  const warnings = warningsOfThisTest()
  await server.redis.call('ACL', 'SETUSER', 'default', '-hsetnx')
  onTestFinished(async () => void (await server.redis.call('ACL', 'SETUSER', 'default', '+@all')))
  await storeWith(8).ready()
  expect(warnings).toMatchObject([{ code: 'ONETRIP_LAYOUT' }])
})
