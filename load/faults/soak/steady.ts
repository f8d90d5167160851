import { median } from 'simple-statistics'
import { type Reading, type ResourceName, resourceNames } from './readings.ts'

/** The allowed growth of a resource during a run: a share of its start value, but at least `least`. */
interface Bound {
  readonly share: number
  readonly least: number
}

const MB = 1e6

/**
 * After garbage collection, a heap varies only with compiled code and caches. RSS includes memory that V8 and the
 * allocator keep: bursts after a fault raised that of an API in steps from 135 to 198 MB, while its heap stayed the
 * same (30 minutes, 2 cores, 2026-11-22). Idle connections open and close. Redis's memory includes client buffers, buffers of the append-only file, and unused space in hash
 * tables.
 */
const bounds: Readonly<Record<ResourceName, Bound>> = {
  'API heap': { share: 0.15, least: 4 * MB },
  'API RSS': { share: 0.2, least: 80 * MB },
  'API descriptors': { share: 0.2, least: 20 },
  'Redis memory': { share: 0.15, least: 2 * MB },
  'Redis RSS': { share: 0.2, least: 16 * MB },
  'Redis connections': { share: 0.2, least: 20 },
}

export interface Verdict {
  readonly resource: ResourceName
  /** The value of the trend line at the end of the warm-up; null with too few readings. */
  readonly start: number | null
  /** The value of the trend line at the end of the run; null with too few readings. */
  readonly end: number | null
  /** The allowed growth; null with too few readings. */
  readonly bound: number | null
  readonly isSteady: boolean
}

const WINDOWS = 12

/**
 * Judges each resource by the trend of the readings after the warm-up: the Theil-Sen line (the median of the slopes
 * between all pairs) through the medians of 12 windows. Up to a quarter of the windows can be outliers, for instance
 * during faults, without an effect on the line.
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

/** The medians of windows with about the same number of points. */
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

/** The values of the trend line at the first and the last reading; undefined with too few readings. */
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
