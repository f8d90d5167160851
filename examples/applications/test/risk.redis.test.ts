import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { onePipeline } from '../compare.ts'
import { features, localCache, recordByHset, writeBehind } from '../risk.ts'

const server = redisOfThisFile()
const send = (commands: Parameters<typeof onePipeline>[1]) => onePipeline(server.redis, commands)
beforeEach(() => server.redis.flushall())

const keys = ['card', 'user']

test('features of several keys, also of unknown ones', async () => {
  await server.redis.hset('card', { payments: 3, spent: 120 })
  expect(await features(send, keys)).toEqual([{ payments: 3, spent: 120 }, {}])
})

test('HSET records one of several payments at the same time, HINCRBY all', async () => {
  await Promise.all(Array.from({ length: 50 }, () => recordByHset(send, keys, 2)))
  expect(await features(send, keys)).toEqual(keys.map(() => ({ payments: 1, spent: 2 })))
  await server.redis.flushall()
  await Promise.all(
    Array.from({ length: 50 }, () => {
      const later = writeBehind()
      for (const key of keys) later.add(key, 'payments', 1)
      return later.flush(send)
    }),
  )
  expect(await features(send, keys)).toEqual(keys.map(() => ({ payments: 50 })))
})

test('payments are added up and written once, also if sending them fails', async () => {
  const later = writeBehind()
  for (const amount of [1, 2, 3]) later.add('card', 'spent', amount)
  const sent = vi.fn(send)
  await later.flush(sent)
  expect(sent.mock.calls).toEqual([[[['HINCRBY', 'card', 'spent', 6]]]])
  later.add('card', 'spent', 4)
  const lost = async () => {
    throw new Error('no reply')
  }
  await expect(later.flush(lost)).rejects.toThrow('no reply')
  await later.flush(send)
  expect(await features(send, ['card'])).toEqual([{ spent: 6 }])
})

test('the local cache reads a key once in its time, and several missing keys together', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const read = localCache(100)
  const sent = vi.fn(send)
  await server.redis.hset('card', 'payments', 1)
  expect(await read(sent, keys)).toEqual([{ payments: 1 }, {}])
  await server.redis.hset('card', 'payments', 2)
  vi.advanceTimersByTime(99)
  expect(await read(sent, ['user', 'card', 'device'])).toEqual([{}, { payments: 1 }, {}])
  vi.advanceTimersByTime(1)
  expect(await read(sent, ['card'])).toEqual([{ payments: 2 }])
  expect(sent.mock.calls.map(([commands]) => commands.map(([, key]) => key))).toEqual([
    ['card', 'user'],
    ['device'],
    ['card'],
  ])
})
