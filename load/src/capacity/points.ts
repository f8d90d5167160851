import { linearRegression } from 'simple-statistics'

/** Measured values, by ascending `x`. */
export type Points = readonly (readonly [x: number, y: number])[]

/** `y = constant + slope * x`; neither is negative. */
export interface Line {
  readonly constant: number
  readonly slope: number
}

/** The line of least squares; a part that noise made negative is 0. */
export function lineThrough(points: Points): Line {
  const { m, b } = linearRegression(points.map(([x, y]) => [x, y]))
  return { constant: Math.max(0, b), slope: Math.max(0, m) }
}

export const on = ({ constant, slope }: Line, x: number) => constant + slope * x

/**
 * The value at `x` on the straight lines between the points; beyond the last point on the line of the last
 * two. More never needs less: a value is at least that of the points before it.
 *
 * @param points two or more.
 */
export function along(points: Points, x: number): number {
  const rising = points.map(([at], index): readonly [number, number] => [
    at,
    Math.max(...points.slice(0, index + 1).map(([, y]) => y)),
  ])
  const next = rising.findIndex(([at]) => at >= x)
  const end = next === -1 ? rising.length - 1 : Math.max(1, next)
  const [[x0, y0], [x1, y1]] = [rising[end - 1] ?? [0, 0], rising[end] ?? [0, 0]]
  return y0 + ((y1 - y0) * (x - x0)) / (x1 - x0)
}

/** The largest whole `x`, at least 1, with a value of at most `y`; `points` as for `along`. */
export function reaching(points: Points, y: number): number {
  let [low, high] = [1, 2]
  while (along(points, high) <= y && high < Number.MAX_SAFE_INTEGER / 2) high *= 2
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (along(points, middle) <= y) low = middle
    else high = middle
  }
  return low
}
