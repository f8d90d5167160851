import { glob } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { MINUTES, startSoak } from '../support/soak.ts'

test(
  'an interrupted soak runs the audit, which finds changed records in Redis',
  async () => {
    const { load, state, end } = await startSoak()
    const [socket = ''] = await Array.fromAsync(glob(join(state, 'run/soak-*/redis.sock')))
    const redis = new Redis(socket, { lazyConnect: true, maxRetriesPerRequest: null })
    redis.on('error', () => {}) // the soak kills Redis
    onTestFinished(() => redis.disconnect())
    const mostViewed = () => redis.zrange('viewed:', '0', '1', 'WITHSCORES')
    await expect.poll(async () => Number((await mostViewed())[3])).toBeLessThan(-2)
    const [removed = '', , raised = ''] = await mostViewed()
    await redis.zrem('viewed:', removed)
    await redis.zincrby('viewed:', -1_000, raised)
    load.signal('SIGINT')
    const { code, text, interrupted, software, values } = await end()
    expect({ code, interrupted }).toEqual({ code: 130, interrupted: true })
    expect(software).toEqual({ Redis: expect.stringMatching(/^[\d.]+ patched-/) })
    expect(values.wrong).toBe(2)
    expect(values.lost).toBeGreaterThan(0)
    expect(values.extra).toBeGreaterThan(900) // some may have had an unknown outcome
    expect(text).toContain('The soak failed: extra.')
    for (const item of [removed, raised]) expect(text).toContain(`${item}: `)
  },
  3 * MINUTES,
)
