import type { Worker } from 'node:cluster'
import { Counter, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { MergedMetrics } from '../src/workers/merged-metrics.ts'

test('counters of an exited worker remain, but not values that it had read from Redis', async () => {
  const registry = new Registry()
  const registers = [registry]
  new Counter({ name: 'own_total', help: 'Counted by the worker', registers }).inc(7)
  new Counter({ name: 'read_total', help: 'Read from Redis', registers, aggregator: 'max' }).inc(9)
  const merged = new MergedMetrics(async () => [])
  const worker = {} as Worker // used only as an identity
  merged.take(worker, await registry.getMetricsAsJSON())
  expect(await merged.text([])).toContain('read_total 9')
  merged.retire(worker)
  const text = await merged.text([])
  expect(text).toContain('own_total 7')
  expect(text).not.toContain('read_total')
  merged.take(worker, await registry.getMetricsAsJSON()) // a late reply
  expect(await merged.text([])).toBe(text)
})
