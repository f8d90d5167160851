import { linearRegression } from 'simple-statistics'

/** Measured values, sorted by `x`. */
export type Points = readonly (readonly [x: number, y: number])[]

/** `y = constant + slope * x`. Both parameters are at least 0. */
export interface Line {
  readonly constant: number
  readonly slope: number
}

/** Fits a line by least squares. Negative parameters, which are due to noise, become 0. */
export function lineThrough(points: Points): Line {
  const { m, b } = linearRegression(points.map(([x, y]) => [x, y]))
  return { constant: Math.max(0, b), slope: Math.max(0, m) }
}

export const valueAt = ({ constant, slope }: Line, x: number) => constant + slope * x

/**
 * Linear interpolation between the points; beyond the last point, extrapolation by the last two. The result never
 * decreases with `x`: a point counts as at least as high as all points before it.
 *
 * @param points two or more.
 */
export function interpolate(points: Points, x: number): number {
  const rising = points.map(([at], index): readonly [number, number] => [
    at,
    Math.max(...points.slice(0, index + 1).map(([, y]) => y)),
  ])
  const next = rising.findIndex(([at]) => at >= x)
  const end = next === -1 ? rising.length - 1 : Math.max(1, next)
  const [[x0, y0], [x1, y1]] = [rising[end - 1] ?? [0, 0], rising[end] ?? [0, 0]]
  return y0 + ((y1 - y0) * (x - x0)) / (x1 - x0)
}

/** The largest whole `x`, at least 1, whose interpolated value is at most `y`. @param points two or more. */
export function largestWithin(points: Points, y: number): number {
  let [low, high] = [1, 2]
  while (interpolate(points, high) <= y && high < Number.MAX_SAFE_INTEGER / 2) high *= 2
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (interpolate(points, middle) <= y) low = middle
    else high = middle
  }
  return low
}
