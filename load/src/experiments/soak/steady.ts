import { median } from 'simple-statistics'
import { type Reading, type ResourceName, resourceNames } from './readings.ts'

/** How much a resource may grow over a run: a share of what it began with, or `least` if that is more. */
interface Bound {
  readonly share: number
  readonly least: number
}

const MB = 1e6

/**
 * A heap that is read after garbage collection moves with compiled code and caches only. RSS has the memory
 * that the allocator keeps. Connections move between workers when one dies, and idle ones come and go.
 * Redis's memory has the buffers of its clients and of its log, and unused space in its tables.
 */
const bounds: Readonly<Record<ResourceName, Bound>> = {
  'worker heap': { share: 0.15, least: 4 * MB },
  'worker RSS': { share: 0.2, least: 24 * MB },
  'worker descriptors': { share: 0.2, least: 20 },
  'primary heap': { share: 0.15, least: 4 * MB },
  'primary RSS': { share: 0.2, least: 24 * MB },
  'primary descriptors': { share: 0.2, least: 20 },
  'Redis memory': { share: 0.15, least: 2 * MB },
  'Redis RSS': { share: 0.2, least: 16 * MB },
  'Redis connections': { share: 0.2, least: 20 },
}

export interface Verdict {
  readonly resource: ResourceName
  /** By the trend, at the end of the warm-up and of the run; null with too few readings. */
  readonly start: number | null
  readonly end: number | null
  /** How much it may grow. */
  readonly bound: number | null
  readonly isSteady: boolean
}

const WINDOWS = 12

/**
 * Judges each resource by the trend of the readings after the warm-up: the medians of 12 windows of time,
 * and through these the line of Theil and Sen (the median of the slopes between all pairs). Up to a quarter of
 * the windows may be off, as during faults, without effect on the line.
 */
export function judge(readings: readonly Reading[], warmUpSeconds: number): Verdict[] {
  const counted = readings.filter(({ second }) => second >= warmUpSeconds)
  return resourceNames.map((resource) => {
    const points = counted.flatMap(({ second, values }) => {
      const value = values[resource]
      return value === undefined ? [] : [{ second, value }]
    })
    const line = trend(points)
    if (!line) return { resource, start: null, end: null, bound: null, isSteady: false }
    const { start, end } = line
    const { share, least } = bounds[resource]
    const bound = Math.max(share * start, least)
    return { resource, start, end, bound, isSteady: end - start <= bound }
  })
}

interface Point {
  readonly second: number
  readonly value: number
}

/** The medians of windows with about as many points each. */
function windowsOf(points: readonly Point[]): Point[] {
  return Array.from({ length: WINDOWS }, (_, index) => {
    const from = Math.floor((index * points.length) / WINDOWS)
    const own = points.slice(from, Math.floor(((index + 1) * points.length) / WINDOWS))
    return {
      second: median(own.map(({ second }) => second)),
      value: median(own.map(({ value }) => value)),
    }
  })
}

/** The line through the windows, at the first and the last reading; undefined with too few readings. */
function trend(points: readonly Point[]): { start: number; end: number } | undefined {
  const [first, last] = [points[0], points.at(-1)]
  if (!first || !last || points.length < 2 * WINDOWS) return undefined
  const windows = windowsOf(points)
  const slope = median(
    windows.flatMap((one, index) =>
      windows
        .slice(index + 1)
        .map((other) => (other.value - one.value) / (other.second - one.second)),
    ),
  )
  const middle = median(windows.map(({ second, value }) => value - slope * second))
  return { start: middle + slope * first.second, end: middle + slope * last.second }
}
