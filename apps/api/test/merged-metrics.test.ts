import type { Worker } from 'node:cluster'
import { Counter, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { MergedMetrics } from '../src/workers/merged-metrics.ts'

test('counters of an exited worker remain, but not values that it had read from Redis', async () => {
  const registry = new Registry()
  const registers = [registry]
  new Counter({ name: 'own_total', help: 'Counted by the worker', registers }).inc(7)
  new Counter({ name: 'read_total', help: 'Read from Redis', registers, aggregator: 'max' }).inc(9)
  const merged = new MergedMetrics(() => 1)
  const worker = {} as Worker // used only as an identity
  const workers = new Map([[worker, async () => await registry.getMetricsAsJSON()]])
  expect(await merged.text(workers)).toContain('read_total 9')

  const late = Promise.withResolvers<void>()
  workers.set(worker, async () => {
    await late.promise
    return await registry.getMetricsAsJSON()
  })
  const during = merged.text(workers)
  workers.delete(worker)
  merged.retire(worker)
  late.resolve()
  for (const text of [await during, await merged.text(workers)]) {
    expect(text).toContain('own_total 7')
    expect(text).not.toContain('read_total')
  }
})
