/** The API's clock is set back by this. It must be less than a minute, by which tokens may be ahead of the clock. */
export const CLOCK_STEP_MS = 30_000

/** The environment variable with the interval of the reports of an API process, in milliseconds. */
export const READ_EVERY_MS = 'SOAK_READ_EVERY_MS'

/** The resources of an API process. Sizes are in bytes. */
export interface ApiReading {
  /** Used heap after a full garbage collection. */
  heap: number
  rss: number
  descriptors: number
}

/** Parses a line of the API's output; undefined if it is not a reading. */
export function readingIn(line: string): ApiReading | undefined {
  return line.startsWith('{"soak":') ? JSON.parse(line).soak : undefined
}

/** The name of a resource in tables. */
export type ResourceName = (typeof resourceNames)[number]

export const resourceNames = [
  'API heap',
  'API RSS',
  'API descriptors',
  'Redis memory',
  'Redis RSS',
  'Redis connections',
] as const

export interface Reading {
  /** Since the start of the run. */
  readonly second: number
  readonly values: Readonly<Partial<Record<ResourceName, number>>>
}
