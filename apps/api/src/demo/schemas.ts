import { type StrategyName, strategyNames } from '@onetrip/session-store'
import { type TSchema, Type } from 'typebox'
import type { Topology } from '../redis-location.ts'
import { Exactly } from '../schemas.ts'

const Strategy = Type.Unsafe<StrategyName>({ type: 'string', enum: [...strategyNames] })

/** One item per lane. */
const Pair = <Item extends TSchema>(item: Item) => Type.Array(item, { minItems: 2, maxItems: 2 })

const lanes = Pair(Strategy)
const distanceMs = Type.Number({
  minimum: 0,
  description:
    'Latency added to each round trip to Redis, in ms. GET /demo lists the allowed values',
})

export const RaceBody = Exactly(
  {
    lanes,
    connections: Type.Integer({ minimum: 1, description: 'Load generator connections per lane' }),
    distanceMs,
  },
  {
    description: 'Strategies to compare',
    examples: [{ lanes: ['naive', 'batch'], connections: 64, distanceMs: 0 }],
  },
)

export const WireBody = Exactly(
  { lanes, distanceMs },
  {
    description: 'Strategies to trace',
    examples: [{ lanes: ['naive', 'batch'], distanceMs: 0 }],
  },
)

export const RaceStarted = Exactly(
  { id: Type.String() },
  { description: 'Race started', examples: [{ id: '2f1f8c5e-6c2d-4c4e-9d3f-0d0c5a1b7e42' }] },
)

const RaceLimits = Exactly({
  strategies: Type.Array(Strategy),
  connections: Exactly({
    default: Type.Integer(),
    minimum: Type.Integer(),
    maximum: Type.Integer(),
  }),
  distancesMs: Type.Array(Type.Number()),
  rounds: Type.Integer({ description: 'In each round, every lane has one turn' }),
  turnSeconds: Type.Number(),
})

export const Demo = Exactly(
  {
    race: Type.Union([RaceLimits, Type.Null()]),
    why: Type.Optional(Type.String({ description: 'Why no race is available' })),
    login: Type.Array(Type.String(), { description: 'String fields in the body of POST /login' }),
    server: Type.Boolean({ description: 'Whether GET /demo/server exists: not in production' }),
    riskFeatures: Type.Boolean({ description: 'Whether GET /me/risk exists (RISK_FEATURES)' }),
  },
  {
    description: 'Limits of a race (null: no race available), login fields and available routes',
    examples: [
      {
        race: {
          strategies: [...strategyNames],
          connections: { default: 64, minimum: 1, maximum: 256 },
          distancesMs: [0, 0.3, 1, 5, 48],
          rounds: 5,
          turnSeconds: 1,
        },
        login: ['user'],
        server: true,
        riskFeatures: true,
      },
      {
        race: null,
        why: 'no demo service is running',
        login: ['user', 'password'],
        server: false,
        riskFeatures: false,
      },
    ],
  },
)

const Micros = Type.Number({ description: 'Microseconds since the request was sent' })

const Exchange = Exactly({
  kind: Type.String({ enum: ['connect', 'send', 'receive', 'close'] }),
  atUs: Micros,
  untilUs: Micros,
  roundTrip: Type.Optional(Type.Integer({ description: 'Number of the round trip, from 1' })),
  bytes: Type.Integer(),
  lines: Type.Array(Type.String(), {
    description: 'Commands or replies as text, without secrets',
  }),
})

const Wire = Exactly({
  strategy: Strategy,
  http: Exactly({ startUs: Type.Literal(0), endUs: Micros }),
  connections: Type.Integer({ description: 'Connections opened for this view' }),
  roundTrips: Type.Integer({ description: 'Including connection setup and QUIT' }),
  exchanges: Type.Array(Exchange),
})

export const Wires = Exactly(
  { lanes: Pair(Wire) },
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

const Count = Type.Integer()

export const Server = Exactly(
  {
    topology: Type.Unsafe<Topology>({ type: 'string', enum: ['single', 'cluster', 'sentinel'] }),
    nodes: Type.Array(Type.String(), {
      description: 'host:port or socket path of each server that holds keys',
    }),
    unavailable: Type.Array(Type.String(), { description: 'Nodes that did not answer' }),
    build: Type.Union([Type.String(), Type.Null()], { description: 'null: not built by Onetrip' }),
    version: Type.String(),
    ioThreads: Type.Integer({ description: 'Including the main thread' }),
    connectedClients: Count,
    commandsPerSecond: Count,
    totalConnectionsReceived: Count,
    usedMemory: Type.Integer({ description: 'Bytes' }),
    uptimeSeconds: Type.Integer({ description: 'Uptime of the server that started last' }),
  },
  {
    description:
      'State of the Redis server, at most one second old. Cluster: sums over its primaries; build and threads of the first',
    examples: [
      {
        topology: 'single',
        nodes: ['127.0.0.1:6390'],
        unavailable: [],
        build: 'patched-13da68d7236d',
        version: '8.0.6',
        ioThreads: 1,
        connectedClients: 4,
        commandsPerSecond: 12,
        totalConnectionsReceived: 17,
        usedMemory: 1_320_480,
        uptimeSeconds: 90,
      },
    ],
  },
)
