import { type Static, type TProperties, type TSchema, Type } from 'typebox'

// The data exchanged between the demo service, the routes below /demo and the demo page. A lane is an index, from 0.

/** An object without additional properties. */
export const Exactly = <Properties extends TProperties>(
  properties: Properties,
  options: { description?: string; examples?: unknown[] } = {},
) => Type.Object(properties, { additionalProperties: false, ...options })

/** One item per lane. */
const perLane = <Item extends TSchema>(item: Item, maxItems: number) =>
  Type.Array(item, { minItems: 2, maxItems })

const strategy = Type.String({ description: 'A strategy; GET /demo lists those allowed' })
const distanceMs = Type.Number({
  minimum: 0,
  description:
    'Latency added to each round trip to Redis, in ms. GET /demo lists the allowed values',
})

export const WireBody = Exactly(
  { lanes: perLane(strategy, 2), distanceMs },
  {
    description: 'Strategies to trace',
    examples: [{ lanes: ['naive', 'batch'], distanceMs: 0 }],
  },
)
export type WireInput = Static<typeof WireBody>

export const RaceBody = Exactly(
  {
    lanes: perLane(strategy, 4),
    connections: Type.Integer({ minimum: 1, description: 'Load generator connections per lane' }),
    distanceMs,
  },
  {
    description: 'Strategies to compare',
    examples: [{ lanes: ['naive', 'batch'], connections: 64, distanceMs: 0 }],
  },
)
export type RaceInput = Static<typeof RaceBody>

export const RaceStarted = Exactly(
  { id: Type.String() },
  { description: 'Race started', examples: [{ id: '2f1f8c5e-6c2d-4c4e-9d3f-0d0c5a1b7e42' }] },
)

const RaceLimits = Exactly({
  strategies: Type.Array(Type.String()),
  connections: Exactly({
    default: Type.Integer(),
    minimum: Type.Integer(),
    maximum: Type.Integer(),
  }),
  distancesMs: Type.Array(Type.Number()),
  rounds: Type.Integer({ description: 'In each round, every lane has one turn' }),
  turnSeconds: Type.Number(),
  wire: Type.Boolean({ description: 'Whether page views can be traced (POST /demo/wire)' }),
})
/** The allowed inputs of a race. */
export type RaceLimits = Static<typeof RaceLimits>

export const Demo = Exactly(
  {
    race: Type.Union([RaceLimits, Type.Null()]),
    why: Type.Optional(Type.String({ description: 'Why no race is available' })),
    repository: Type.Optional(Type.String({ description: 'URL of the source code' })),
  },
  {
    description: 'Limits of a race; null: no race available',
    examples: [
      {
        race: {
          strategies: ['naive', 'batch'],
          connections: { default: 64, minimum: 1, maximum: 256 },
          distancesMs: [0, 0.3, 1, 5, 48],
          rounds: 5,
          turnSeconds: 0.75,
          wire: true,
        },
      },
      { race: null, why: 'no demo service is running' },
    ],
  },
)
export type Demo = Static<typeof Demo>

const Micros = Type.Number({ description: 'Microseconds since the request was sent' })

const Exchange = Exactly({
  kind: Type.Unsafe<'connect' | 'send' | 'receive' | 'close'>(
    Type.String({ enum: ['connect', 'send', 'receive', 'close'] }),
  ),
  atUs: Micros,
  untilUs: Micros,
  roundTrip: Type.Optional(
    Type.Integer({ description: 'Number of the round trip, from 1; absent for connect and close' }),
  ),
  bytes: Type.Integer(),
  lines: Type.Array(Type.String(), {
    description: 'Commands or replies as text, without secrets',
  }),
})
/** One message between an API and Redis: `atUs` is when it left, `untilUs` when it arrived. */
export type Exchange = Static<typeof Exchange>

const Wire = Exactly({
  strategy: Type.String(),
  http: Exactly({ startUs: Type.Literal(0), endUs: Micros }),
  connections: Type.Integer({ description: 'Connections opened for this view' }),
  roundTrips: Type.Integer({ description: 'Including connection setup and QUIT' }),
  exchanges: Type.Array(Exchange),
})
/** The traffic between the API and Redis for one page view: the one with the median time of a few. */
export type Wire = Static<typeof Wire>

export const Wires = Exactly(
  { lanes: perLane(Wire, 2) },
  {
    description:
      'Traffic of one page view per lane, recorded by a relay in front of Redis. Of five views, the one with the median duration',
    examples: [
      {
        lanes: ['batch', 'pipeline'].map((strategy) => ({
          strategy,
          http: { startUs: 0, endUs: 412.5 },
          connections: 0,
          roundTrips: 1,
          exchanges: [
            {
              kind: 'send',
              atUs: 180.25,
              untilUs: 183.5,
              roundTrip: 1,
              bytes: 403,
              lines: ['ZADD recent: XX 1795325841.918 <session>'],
            },
          ],
        })),
      },
    ],
  },
)
export type Wires = Static<typeof Wires>

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
  lane: number
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
  strategy: string
  requestsPerSecond: Range
  p50Ms: number | null
  p99Ms: number | null
}

export interface Done extends Pick<RaceInput, 'connections' | 'distanceMs'> {
  /** Names the page of the result: `/race/<id>`. */
  id: string
  /** When the race ended: ISO 8601, UTC. */
  date: string
  /** CPU and number of cores. */
  machine: string
  lanes: LaneResult[]
  /** Page views per second of the last lane as a multiple of the first, by round; null if a lane answered none. */
  ratio: Range | null
  /** Compares the first lane with the last. Without `disturbed`. */
  sentence: string
  /** More than two lanes: compares each lane with the one before. */
  steps: string[]
  /** A warning if other programs took too much CPU time; otherwise null. */
  disturbed: string | null
  /** A command line that repeats the race in the terminal; null on a cluster and in Compose. */
  command: string | null
}

/** The data of each event, by name. */
export interface RaceEvents {
  state: { running: boolean; race: Started | null; last: Done | null }
  started: Started
  preparing: { text: string }
  sample: {
    lane: number
    /** 0: warm-up, which is not part of the result. */
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
