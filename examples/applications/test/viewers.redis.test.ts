import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { onePipeline } from '../compare.ts'
import { bitfieldFilter, isSeen, setbitFilter } from '../viewers.ts'

const server = redisOfThisFile()
const send = (commands: Parameters<typeof onePipeline>[1]) => onePipeline(server.redis, commands)

const [setbit, bitfield] = [setbitFilter('setbit'), bitfieldFilter('bitfield')]
const some = Array.from({ length: 300 }, (_, index) => `viewer ${index}`)

describe.each([setbit, bitfield])('$names', (filter) => {
  test('a viewer is new once, is then found, and no other is', async () => {
    await server.redis.flushall()
    for (const viewer of some) {
      expect(isSeen(await send(filter.find(viewer)))).toBe(false)
      expect(isSeen(await send(filter.add(viewer)))).toBe(false)
    }
    for (const viewer of some) {
      expect(isSeen(await send(filter.find(viewer)))).toBe(true)
      expect(isSeen(await send(filter.add(viewer)))).toBe(true)
    }
    for (const viewer of some) {
      expect(isSeen(await send(filter.find(`another ${viewer}`)))).toBe(false)
    }
  })
})

test('both set the same bits: several dozen for each viewer', async () => {
  await server.redis.flushall()
  for (const filter of [setbit, bitfield]) await send(filter.add('ada'))
  expect(await server.redis.getBuffer('bitfield')).toEqual(await server.redis.getBuffer('setbit'))
  expect(await server.redis.bitcount('setbit')).toBe(40)
})

test('BITFIELD: of several first views at the same time, exactly one is new', async () => {
  const connections = Array.from({ length: 8 }, () => new Redis(server.socket))
  onTestFinished(() => {
    for (const connection of connections) connection.disconnect()
  })
  for (const viewer of some.slice(0, 50)) {
    await server.redis.flushall()
    const views = await Promise.all(
      connections.map((connection) => onePipeline(connection, bitfield.add(viewer))),
    )
    expect(views.filter((replies) => !isSeen(replies))).toHaveLength(1)
  }
})
