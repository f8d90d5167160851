import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { redisForThisTest } from '../../.vitest/redis.ts'
import { BlockingWatch } from '../src/retention/blocking.ts'
import { unixUrl } from '../src/stack/address.ts'

// Spins for 20 ms by Redis's own clock.
const BLOCK = `
local function micros() local t = redis.call('TIME') return t[1] * 1000000 + t[2] end
local from = micros()
while micros() - from < 20000 do end`

test('a command that blocks is told, with its name and time, and forgotten afterwards', async () => {
  const { socket } = await redisForThisTest()
  const watch = new BlockingWatch(unixUrl(socket))
  const redis = new Redis(socket)
  try {
    await watch.begin()
    await redis.eval(BLOCK, 0)
    const blocking = await watch.end()
    expect(blocking.slow).toBeGreaterThanOrEqual(1)
    expect(blocking.longest?.command).toBe('EVAL')
    expect(blocking.longest?.milliseconds).toBeGreaterThanOrEqual(20)
    expect(blocking.events.command).toBeGreaterThanOrEqual(20)
    await watch.begin()
    expect((await watch.end()).longest?.command).not.toBe('EVAL')
  } finally {
    redis.disconnect()
    watch.close()
  }
})
