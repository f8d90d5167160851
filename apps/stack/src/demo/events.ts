import type { StrategyName } from '@onetrip/session-store'

// The data that the demo service and the demo page exchange. A lane is 0 or 1.

export type Pair<T> = readonly [T, T]

export interface RaceInput {
  lanes: Pair<StrategyName>
  /** Connections of the load generator, per lane. */
  connections: number
  /** Added to each round trip to Redis. */
  distanceMs: number
}

/** What a race may be. */
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

/** What a lane answered and used; CPU time in microseconds. */
export interface Totals {
  /** Answered with 2xx. */
  requests: number
  /** All others. */
  errors: number
  connectionsOpened: number
  roundTrips: number
  commands: number
  redisCpuUs: number
  apiCpuUs: number
}

/** Latencies are null where nothing was answered. */
export interface Turn extends Totals {
  lane: 0 | 1
  /** From 1. */
  round: number
  /** Until the last request was answered. */
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
  /** The lane that the ratio has above the line. */
  faster: 0 | 1
  /** Of the requests per second, round by round; null where a lane answered nothing in some round. */
  ratio: Range | null
  sentence: string
  /** What else the machine did, if it did too much; otherwise null. */
  disturbed: string | null
}

/** The data of each event, by its name. */
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

/** One part of the exchange between an API and Redis. Times are in microseconds since the request was sent. */
export interface Exchange {
  kind: 'connect' | 'send' | 'receive' | 'close'
  /** It left. */
  atUs: number
  /** It arrived at the other end. */
  untilUs: number
  /** From 1; not there for a connection that opens or closes. */
  roundTrip?: number
  bytes: number
  /** Commands or replies in words, without secrets. */
  lines: string[]
}

/** One page view, the median one of a few, as it went over the wire between the API and Redis. */
export interface Wire {
  strategy: StrategyName
  http: { startUs: 0; endUs: number }
  /** How many were opened. */
  connections: number
  roundTrips: number
  exchanges: Exchange[]
}

/** What the demo service refuses, with a status of HTTP and a message for the user. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly status: number

  constructor(status: 400 | 404 | 409 | 503, message: string) {
    super(message)
    this.status = status
  }
}
