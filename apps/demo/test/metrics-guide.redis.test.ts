import { readFileSync } from 'node:fs'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { demoForThisTest } from './support.ts'

const server = redisOfThisFile()

test('docs/operations.md describes exactly the metrics that the API serves', async () => {
  const app = await demoForThisTest(server.socket)
  const served = new Set((await app.metrics.getMetricsAsJSON()).map(({ name }) => name))
  const guide = readFileSync(new URL('../../../docs/operations.md', import.meta.url), 'utf8')
  const told = guide.matchAll(/`((?:onetrip|http|nodejs|process)_\w+)`/g)
  const names = new Set(Array.from(told, ([, name = '']) => name))
  expect([...names].filter((name) => !served.has(name))).toEqual([])
  const ours = [...served].filter((name) => /^(onetrip|http)_/.test(name))
  expect(ours.filter((name) => !names.has(name))).toEqual([])
})
