import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  batchesPerView,
  type Machines,
  type Measurements,
  memoryOf,
  planFor,
  type Size,
} from '../../src/capacity/model.ts'
import { fullestShare } from '../../src/capacity/partitions.ts'

const line = (constant: number, slope: number) => ({ constant, slope })

/** Round numbers, so that the expected results can be computed by hand. */
const measured: Measurements = {
  ...{ apiMicros: 20, viewsPerBatch: 10, clientOfOne: 5, client: line(10, 5) },
  plain: { main: line(5, 10), others: line(1, 0) },
  threaded: { main: line(4, 5), others: line(2, 5) },
  ...{ bytesIn: line(400, 0), bytesOut: line(100, 0), commandsPerView: 5 },
  bytesOfSlots: 1e6,
  bytesByItems: [
    [0, 400],
    [1, 500],
    [25, 1_220],
  ],
  bytesByData: [
    [0, 400],
    [100, 700],
  ],
  bytesPerItem: 100,
  stallMs: [
    [0, 0],
    [100_000, 100],
    [1_000_000, 1_100],
  ],
  payloadMb: [
    [0, 0],
    [1_000_000, 45],
  ],
}

const size: Size = {
  ...{ sessions: 1e6, viewsPerSecond: 20_000, items: 100_000, itemsPerSession: 6, dataBytes: 0 },
}
const machines: Machines = {
  ...{ coresPerNode: 1, nodeMemory: 10e9, nodeNetwork: 1e9, replicas: 0, maxStallMs: 100 },
  partitions: null,
}
const plan = (of: Partial<Size>, on: Partial<Machines> = {}) =>
  planFor({ ...size, ...of }, { ...machines, ...on }, measured)

describe('planFor, with results computed by hand', () => {
  test('one Redis is sufficient for a small size', () => {
    const one = plan({})
    // 20,000 views of 20 µs need 0.4 cores.
    expect(one).toMatchObject({ apiProcesses: 1, apiMicros: 20, primaries: 1, replicas: 0 })
    // 650 bytes per session with 6 items (500 + 5/24 of 720), and 100,000 counts of 100 bytes.
    expect(one.memoryBytes).toBeCloseTo(1e6 * 650 + 1e5 * 100)
    expect(one.memoryPerNode).toBeCloseTo(one.memoryBytes)
    // With 0.1 batches per view: 5 + 1 µs of the main thread, 1 µs of others on the same core, and the hottest item.
    const hot = ((1 - (1 - 1 / 12.09) ** 10) / 10) * 0.02 * (5 / 5)
    expect(one.mainPerNode).toBeCloseTo(20_000 * 7e-6 + hot, 3)
    // 400 bytes to Redis per view.
    expect(one.networkPerNode).toBeCloseTo(20_000 * 400 * 8)
    expect(one).toMatchObject({ partitions: 64, sessionsPerPartition: 15_625 })
    expect(one.stallMs).toBeCloseTo(15.6, 1)
    expect(one.payloadMb).toBeCloseTo(0.7, 1)
  })

  test('a cluster has at least three primaries and needs more CPU time of the API', () => {
    const three = plan({ sessions: 10e6, viewsPerSecond: 30_000 })
    expect(three).toMatchObject({ primaries: 3, runsOutFirst: 'memory' })
    const batches = (3 * (1 - (2 / 3) ** 20)) / 10
    expect(three.batchesPerView).toBeCloseTo(batches)
    expect(three.memoryBytes).toBeCloseTo(1e7 * 650 + 1e5 * 100 + 1e6) // with slots
    expect(three.apiMicros).toBeCloseTo(20 + 10 + 5 * batches - 5)
  })

  test('a primary sends all received bytes to each replica', () => {
    const two = plan({ sessions: 1e8 }, { replicas: 2 })
    expect(two.replicas).toBe(2 * two.primaries)
    const sent = (100 + 2 * 400) * 8 * 20_000
    expect(plan({}, { replicas: 2 }).networkPerNode).toBeCloseTo(sent)
  })

  test('--max-stall-ms limits the sessions of a partition', () => {
    // 100,000 sessions block a node for 100 ms.
    const on = { nodeMemory: 1e12 }
    expect(plan({ sessions: 6.4e6 }, on)).toMatchObject({ partitions: 64, stallMs: 100 })
    expect(plan({ sessions: 6.5e6 }, on).partitions).toBe(128)
    expect(plan({ sessions: 6.5e6 }, { ...on, maxStallMs: 200 }).partitions).toBe(64)
    expect(plan({ sessions: 1e9 }, on).partitions).toBe(16_384)
  })

  test('there are at least 16 partitions per primary, unless their number is given', () => {
    const on = { maxStallMs: 1_000_000 }
    const many = plan({ sessions: 1e8 }, on)
    expect(many.primaries).toBeGreaterThan(4)
    expect(many.partitions).toBeGreaterThanOrEqual(16 * many.primaries)
    expect(plan({ sessions: 1e8 }, { ...on, partitions: 100 }).partitions).toBe(100)
  })

  test('more than 25 items per session need no more memory', () => {
    const [all, more] = [25, 100].map((itemsPerSession) => plan({ itemsPerSession }).memoryBytes)
    expect(more).toBe(all)
  })

  test('nodes with four cores or more use I/O threads', () => {
    const on = { nodeMemory: 1e12, nodeNetwork: 1e12 }
    const of = { viewsPerSecond: 200_000, items: 1e6 }
    const [one, three, four] = [1, 3, 4].map((coresPerNode) => plan(of, { ...on, coresPerNode }))
    expect(one?.use['other threads']).toBe(0)
    expect(three?.use['other threads']).toBeGreaterThan(0)
    expect(four?.mainPerNode).toBeLessThan(three?.mainPerNode ?? 0)
  })

  test('the most viewed item can be the bottleneck', () => {
    const many = plan({ viewsPerSecond: 20e6, items: 1_000 })
    expect(many).toMatchObject({ runsOutFirst: 'one item' })
    expect(many.hottestItem).toBeGreaterThan(1)
    expect(plan({ viewsPerSecond: 1e6, items: 1e9 }).runsOutFirst).not.toBe('one item')
  })

  test('rejects sizes that no cluster can hold', () => {
    const huge = { sessions: 1e12 }
    expect(() => plan(huge)).toThrow('do not fit: one of 16,384 partitions is too large for a node')
    expect(() => plan({ sessions: 1e9 }, { partitions: 1 })).toThrow('one of 1 partitions')
  })
})

test('a batch is split between the nodes that have a part of it', () => {
  expect(batchesPerView(1, 10)).toBeCloseTo(0.1)
  expect(batchesPerView(1e6, 1)).toBeCloseTo(2, 3)
  for (const nodes of [2, 3, 10]) {
    expect(batchesPerView(nodes, 10)).toBeGreaterThan(batchesPerView(nodes - 1, 10))
    expect(batchesPerView(nodes, 10)).toBeLessThanOrEqual(nodes / 10)
  }
})

test('the fullest node has at least an equal share, and a single node has all sessions', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 300 }),
      fc.integer({ min: 1, max: 50 }),
      (parts, nodes) => {
        const share = fullestShare(parts, nodes)
        expect(share).toBeGreaterThanOrEqual(1 / nodes)
        expect(share).toBeGreaterThanOrEqual(1 / parts)
        expect(share).toBeLessThanOrEqual(1)
        expect(fullestShare(parts, 1)).toBe(1)
      },
    ),
  )
})

const sizes = fc.record({
  sessions: fc.integer({ min: 1, max: 1e8 }),
  viewsPerSecond: fc.integer({ min: 0, max: 2e6 }),
  items: fc.integer({ min: 1, max: 1e7 }),
  itemsPerSession: fc.integer({ min: 0, max: 100 }),
  dataBytes: fc.integer({ min: 0, max: 2_000 }),
})
const hardware = fc.record({
  coresPerNode: fc.integer({ min: 1, max: 16 }),
  nodeMemory: fc.integer({ min: 8e9, max: 256e9 }),
  nodeNetwork: fc.integer({ min: 1e9, max: 25e9 }),
  replicas: fc.integer({ min: 0, max: 2 }),
  maxStallMs: fc.integer({ min: 10, max: 1_000 }),
  partitions: fc.constant(1_024),
})
const factors = fc.constantFrom('sessions', 'viewsPerSecond', 'itemsPerSession', 'dataBytes')

/** Null if the size does not fit. */
function planIfAny(of: Size, on: Machines) {
  try {
    return planFor(of, on, measured)
  } catch (error) {
    expect(error).toMatchObject({ name: 'Problem' })
    return null
  }
}

test('a larger size never needs fewer resources', () => {
  fc.assert(
    fc.property(sizes, hardware, factors, fc.double({ min: 1, max: 10 }), (of, on, name, times) => {
      const fewer = planIfAny(of, on)
      const larger = planIfAny({ ...of, [name]: Math.ceil(of[name] * times) }, on)
      if (larger === null) return
      for (const need of [
        'apiProcesses',
        'primaries',
        'replicas',
        'memoryBytes',
        'stallMs',
      ] as const) {
        expect(larger[need]).toBeGreaterThanOrEqual(fewer?.[need] ?? Number.POSITIVE_INFINITY)
      }
    }),
    { numRuns: 200 },
  )
})

test('no node exceeds its planned use', () => {
  fc.assert(
    fc.property(sizes, hardware, (of, on) => {
      const plan = planIfAny(of, on)
      fc.pre(plan !== null)
      const { use, apiProcesses, primaries, memoryPerNode } = plan
      for (const share of Object.values(use)) expect(share).toBeLessThanOrEqual(1)
      expect(primaries === 1 || primaries >= 3).toBe(true)
      expect(Number.isInteger(apiProcesses)).toBe(true)
      expect(memoryPerNode * primaries).toBeGreaterThanOrEqual(
        memoryOf(of, measured, primaries > 1) * 0.999,
      )
    }),
    { numRuns: 200 },
  )
})
