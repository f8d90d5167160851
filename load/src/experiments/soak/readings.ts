/** How far the clock of the API is stepped back: less than the minute that tokens may be ahead of it. */
export const CLOCK_STEP_MS = 30_000

/** The environment variable that says how often a process of the API reports. */
export const READ_EVERY_MS = 'SOAK_READ_EVERY_MS'

/** What a process of the API holds, in bytes. */
export interface ApiReading {
  pid: number
  /** `primary`, or the number of the worker. */
  worker: string
  /** After a full garbage collection. */
  heap: number
  rss: number
  descriptors: number
}

/** The reading in a line that an API printed, if it is one. */
export function readingIn(line: string): ApiReading | undefined {
  return line.startsWith('{"soak":') ? JSON.parse(line).soak : undefined
}

/** The name of a resource that is watched, as tables show it. */
export type ResourceName = (typeof resourceNames)[number]

export const resourceNames = [
  'worker heap',
  'worker RSS',
  'worker descriptors',
  'primary heap',
  'primary RSS',
  'primary descriptors',
  'Redis memory',
  'Redis RSS',
  'Redis connections',
] as const

/** Values by resource, so many seconds after the start. */
export interface Reading {
  readonly second: number
  readonly values: Readonly<Partial<Record<ResourceName, number>>>
}
