import type { StrategyName } from '@onetrip/session-store'

// The data exchanged between the demo service and the demo page. A lane is 0 or 1.

export type Pair<T> = readonly [T, T]

export interface RaceInput {
  lanes: Pair<StrategyName>
  /** Connections of the load generator, per lane. */
  connections: number
  /** Added to each round trip to Redis. */
  distanceMs: number
}

/** The allowed inputs of a race. */
export interface RaceLimits {
  strategies: readonly StrategyName[]
  connections: { default: number; minimum: number; maximum: number }
  distancesMs: readonly number[]
  rounds: number
  turnSeconds: number
}

export interface Started extends RaceInput {
  id: string
  rounds: number
  turnSeconds: number
}

/** Responses and resource usage of a lane; CPU time in microseconds. */
export interface Totals {
  /** Requests answered with 2xx. */
  requests: number
  /** All other requests. */
  errors: number
  connectionsOpened: number
  roundTrips: number
  commands: number
  redisCpuUs: number
  apiCpuUs: number
}

/** One turn of a lane. Latencies are null if no request was answered. */
export interface Turn extends Totals {
  lane: 0 | 1
  /** From 1. */
  round: number
  /** Time until the last response. */
  seconds: number
  requestsPerSecond: number
  p50Ms: number | null
  p99Ms: number | null
}

export interface Range {
  median: number
  lowest: number
  highest: number
}

export interface LaneResult extends Totals {
  strategy: StrategyName
  requestsPerSecond: Range
  p50Ms: number | null
  p99Ms: number | null
}

export interface Done {
  id: string
  lanes: Pair<LaneResult>
  /** The faster lane: the numerator of `ratio`. */
  faster: 0 | 1
  /** Ratio of the requests per second, per round; null if a lane answered no request in a round. */
  ratio: Range | null
  sentence: string
  /** A warning if other programs took too much CPU time; otherwise null. */
  disturbed: string | null
}

/** The data of each event, by name. */
export interface RaceEvents {
  state: { running: boolean; race: Started | null; last: Done | null }
  started: Started
  preparing: { text: string }
  sample: {
    lane: 0 | 1
    round: number
    atMs: number
    requestsPerSecond: number
    p99Ms: number | null
  }
  turn: Turn
  done: Done
  failed: { id: string; message: string }
}

export type RaceEvent = {
  [Name in keyof RaceEvents]: { name: Name; data: RaceEvents[Name] }
}[keyof RaceEvents]

/** One message between an API and Redis. Times are in microseconds since the HTTP request was sent. */
export interface Exchange {
  kind: 'connect' | 'send' | 'receive' | 'close'
  /** When it left. */
  atUs: number
  /** When it arrived at the other end. */
  untilUs: number
  /** Number of the round trip, from 1; absent when a connection opens or closes. */
  roundTrip?: number
  bytes: number
  /** Commands or replies as text, without secrets. */
  lines: string[]
}

/** The traffic between the API and Redis for one page view: the one with the median time of a few. */
export interface Wire {
  strategy: StrategyName
  http: { startUs: 0; endUs: number }
  /** Number of opened connections. */
  connections: number
  roundTrips: number
  exchanges: Exchange[]
}

/** A rejected request, with an HTTP status and a message for the user. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly status: number

  constructor(status: 400 | 404 | 409 | 503, message: string) {
    super(message)
    this.status = status
  }
}
