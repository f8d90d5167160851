import { readFileSync } from 'node:fs'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { configurationFor } from '../src/start-redis.ts'
import { redisCli } from './real-redis.ts'

const template = readFileSync(new URL('../redis.conf', import.meta.url), 'utf8')
const settings = template.split('\n').filter((line) => /^[a-z]/.test(line))

const UNITS: Record<string, number> = { kb: 2 ** 10, mb: 2 ** 20, gb: 2 ** 30 }

/** The format of CONFIG GET: bytes as a plain number, no quotes. */
function plain(value: string): string {
  return value
    .replace(/^""$/, '')
    .replaceAll(/\b(\d+)(kb|mb|gb)\b/g, (_, number, unit) => `${number * (UNITS[unit] ?? 1)}`)
}

test('the server has every setting of redis.conf', async () => {
  const redis = await redisForThisTest()
  expect(settings.length).toBeGreaterThan(20)
  for (const line of settings) {
    const [name = '', ...value] = line.split(' ')
    const [known, ...actual] = (await redisCli(redis.socket, 'CONFIG', 'GET', name)).split('\n')
    expect(known, `${name} is a setting of Redis`).toBe(name)
    expect(` ${actual.join('\n')} `, line).toContain(` ${plain(value.join(' '))} `)
  }
})

test('an older server gets only settings that it knows', () => {
  expect(configurationFor('7.0.15', template)).not.toContain('\nmax-new-connections-per-cycle')
  expect(configurationFor('8.0.2', template)).toBe(template)
})
