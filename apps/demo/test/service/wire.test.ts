import { expect, test } from 'vitest'
import type { Wire } from '../../src/events.ts'
import { medianOf } from '../../src/service/wire.ts'

test('shows the view with the median time, not one that the machine delayed', () => {
  const wires = [3_000, 32_800, 1_400, 1_300, 1_500].map(
    (endUs): Wire => ({
      strategy: 'batch',
      http: { startUs: 0, endUs },
      connections: 0,
      roundTrips: 1,
      exchanges: [],
    }),
  )
  expect(medianOf(wires)).toBe(wires[4])
})
