import { once } from 'node:events'
import { parseRedisUrl } from '@onetrip/session-store'
import { unixUrl } from '@onetrip/stack/address.ts'
import { list } from '@onetrip/stack/parsers.ts'
import { startRelay } from '@onetrip/stack/relay/process.ts'
import { bandwidth, duration } from '@onetrip/stack/relay/units.ts'
import { InvalidArgumentError } from 'commander'
import { median } from 'simple-statistics'
import type { Context } from '../../experiments/experiment.ts'
import { encode, rawSocket } from './raw-connection.ts'
import type { RedisServer } from './server.ts'

/** A link to Redis. `distant` is the distance that a relay simulates; null without a relay. */
export interface LinkPlan {
  name: string
  distant: { roundTripMs: number; rate: string } | null
}

/** The links of the articles: round trip time and bandwidth, or null without a relay. */
const named = { unix: null, loopback: null, switch: '0.271ms@1Gb/s', vpn: '48ms@1.8Mb/s' }

export const linkNames: readonly string[] = Object.keys(named)

/** A parser for a list of links: names of `linkNames`, or values such as `5ms@100Mb/s`. */
export const links = list(link)

function link(name: string): LinkPlan {
  const text = name in named ? named[name as keyof typeof named] : name
  if (text === null) return { name, distant: null }
  const [, roundTrip, rate] = /^([^@]+)@([^@]+)$/.exec(text) ?? []
  if (roundTrip && rate) {
    bandwidth(rate) // throws if it is malformed
    return { name, distant: { roundTripMs: duration(roundTrip), rate } }
  }
  const known = linkNames.join(', ')
  throw new InvalidArgumentError(
    `"${name}" is no link. Use ${known}, or a distance such as 5ms@100Mb/s.`,
  )
}

export interface OpenLink {
  /** The URL of the Redis through this link. */
  url: string
  /** Round trip time of a PING: the median of at least five. */
  pingMs: number
}

// The relay itself adds about 0.1 ms to a PING (docs/measurements/store-benchmark.md). `openLink` subtracts up to RELAY_MS; a
// larger excess is due to a busy machine. An excess below the share TOLERANCE of the round trip is not corrected.
const [RELAY_MS, TOLERANCE] = [0.15, 0.02]

/** Opens a link to a Redis on this machine. It is closed at the end of the measurement. */
export async function openLink(
  { name, distant }: LinkPlan,
  server: Pick<RedisServer, 'port' | 'socket'>,
  { signal, defer }: Context,
): Promise<OpenLink> {
  if (!distant) {
    const url = name === 'unix' ? unixUrl(server.socket) : `redis://127.0.0.1:${server.port}`
    return { url, pingMs: await ping(url, 0) }
  }
  const { roundTripMs, rate } = distant
  const openRelay = async (milliseconds: number) => {
    const relay = await startRelay({
      to: server.socket,
      roundTrip: `${milliseconds.toFixed(4)}ms`,
      bandwidth: rate,
      signal,
    })
    defer(() => relay.stop())
    const url = `redis://${relay.address}`
    return { relay, link: { url, pingMs: await ping(url, milliseconds) } }
  }
  const { relay, link } = await openRelay(roundTripMs)
  const excess = Math.min(link.pingMs - roundTripMs, RELAY_MS)
  if (excess < roundTripMs * TOLERANCE) return link
  await relay.stop()
  return (await openRelay(Math.max(0, roundTripMs - excess))).link
}

const REPLY_MS = 3_000

async function ping(url: string, expectedMs: number): Promise<number> {
  const socket = await rawSocket(parseRedisUrl(url).options)
  try {
    const exchange = async () => {
      socket.write(encode(['PING']))
      await once(socket, 'data', { signal: AbortSignal.timeout(REPLY_MS) })
    }
    const count = Math.max(5, Math.min(1_000, 250 / expectedMs)) // for about 250 ms, because a link warms up
    await exchange() // the first PING may wait for the connection
    const times: number[] = []
    while (times.length < count) {
      const start = performance.now()
      await exchange()
      times.push(performance.now() - start)
    }
    return median(times)
  } finally {
    socket.destroy()
  }
}
