import fc from 'fast-check'
import { Histogram, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { createHistogram } from '../src/metrics/histogram.ts'

const description = { name: 'seconds', help: 'A "help" text', buckets: [0.5, 1, 2.5] }

const value = fc.oneof(
  fc.constantFrom(0, ...description.buckets),
  fc.double({ min: 0, max: 4, noNaN: true }),
)
const label = fc.oneof(fc.string(), fc.integer())

test('renders what a histogram of prom-client renders', async () => {
  const property = fc.asyncProperty(fc.array(fc.tuple(value, label, label)), async (observed) => {
    const [own, reference] = [new Registry(), new Registry()]
    const labelNames = ['route', 'status']
    const observe = createHistogram(own, { ...description, labelNames })
    const histogram = new Histogram({ ...description, labelNames, registers: [reference] })
    for (const [seconds, route, status] of observed) {
      observe(seconds, route, status)
      histogram.observe({ route, status }, seconds)
    }
    expect(await own.metrics()).toBe(await reference.metrics())
  })
  await fc.assert(property)
})

test('without labels, it has a series from the beginning', async () => {
  const [own, reference] = [new Registry(), new Registry()]
  const observe = createHistogram(own, description)
  const histogram = new Histogram({ ...description, registers: [reference] })
  expect(await own.metrics()).toBe(await reference.metrics())
  for (const seconds of [0.25, 3]) {
    observe(seconds)
    histogram.observe(seconds)
  }
  expect(await own.metrics()).toBe(await reference.metrics())
})
