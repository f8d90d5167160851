import { Problem } from '@onetrip/stack/problem.ts'
import { openRelay, type Traffic } from '@onetrip/stack/relay/relay.ts'
import { endpoint } from '@onetrip/stack/relay/units.ts'
import { until } from '@onetrip/stack/until.ts'
import { Client } from 'undici'
import type { Wire, WireInput } from '../events.ts'
import { type Lane, Lanes } from './lanes.ts'
import type { RaceOptions } from './race.ts'
import { raceItems, withSessions } from './sessions.ts'
import { exchangesOf } from './trace.ts'

/** The warm-up of a lane ends after this number of views, or after this time and at least one view. */
const WARM_UP = { views: 20, ms: 500 }
const CLOSE_MS = 2_000
/** Several, because other programs may delay a single view. */
const TRACED_VIEWS = 5

/** Sends single page views through two lanes and records their traffic with Redis. */
export class WireTap {
  readonly #options: Pick<RaceOptions, 'redis' | 'sessionSecret'>
  readonly #lanes: Lanes
  readonly #traffic: readonly Traffic[][] = [[], []]

  constructor(options: Pick<RaceOptions, 'redis' | 'sessionSecret'>) {
    this.#options = options
    this.#lanes = new Lanes({
      ...options,
      openLink: (to, distanceMs, lane) =>
        openRelay(
          {
            listen: { host: '127.0.0.1', port: 0 },
            to: endpoint(to),
            roundTrip: distanceMs,
            bandwidth: Number.POSITIVE_INFINITY,
          },
          () => {},
          (traffic) => void this.#traffic[lane]?.push(traffic),
        ),
    })
  }

  /**
   * Traces one page view per lane: of five consecutive views, the one with the median time. Calls must not
   * overlap.
   *
   * @throws Problem, ProgramError if Redis or an API does not answer; the reason of `signal`.
   */
  async trace(wanted: WireInput, signal: AbortSignal): Promise<Wire[]> {
    const { redis, sessionSecret } = this.#options
    return await this.#lanes.use(wanted, { signal }, (lanes) =>
      withSessions({ redis, secret: sessionSecret, count: 1 }, async ([token = '']) => {
        const wires: Wire[] = []
        for (const lane of lanes) wires.push(await this.#view(lane, token, signal))
        return wires
      }),
    )
  }

  /** Stops the lanes. Must not be called during a trace. */
  stop(): Promise<void> {
    return this.#lanes.stop()
  }

  async #view(lane: Lane, token: string, signal: AbortSignal): Promise<Wire> {
    const traffic = this.#traffic[lane.index] ?? []
    const client = new Client(lane.url)
    try {
      traffic.length = 0
      const startedAt = performance.now()
      for (let views = 0; views < WARM_UP.views; views++) {
        await view(client, token, signal)
        if (performance.now() - startedAt > WARM_UP.ms) break
      }
      const [sessionId = ''] = token.split('.')
      const wires: Wire[] = []
      while (wires.length < TRACED_VIEWS) {
        await until(() => isQuiet(traffic), { timeoutMs: CLOSE_MS, signal })
        traffic.length = 0
        const sentAt = performance.now()
        await view(client, token, signal)
        const endUs = (performance.now() - sentAt) * 1_000
        await until(() => isQuiet(traffic), { timeoutMs: CLOSE_MS, signal })
        wires.push({
          strategy: lane.strategy,
          http: { startUs: 0, endUs },
          ...exchangesOf(traffic, { sentAt, sessionId }),
        })
      }
      return medianOf(wires)
    } finally {
      traffic.length = 0
      await client.destroy()
    }
  }
}

/** The wire with the median time, of an odd number of wires. */
function medianOf(wires: readonly Wire[]): Wire {
  const sorted = wires.toSorted((a, b) => a.http.endUs - b.http.endUs)
  return sorted[Math.floor(sorted.length / 2)] as Wire
}

/** Whether every opened connection is closed again. */
function isQuiet(traffic: readonly Traffic[]): boolean {
  const count = (kind: Traffic['kind']) => traffic.filter((one) => one.kind === kind).length
  return count('connect') <= count('close')
}

async function view(client: Client, token: string, signal: AbortSignal): Promise<void> {
  const { statusCode, body } = await client.request({
    method: 'POST',
    path: '/views',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ item: `${raceItems.itemPrefix}1` }),
    signal,
  })
  const text = await body.text()
  if (statusCode !== 200) throw new Problem(`The page view failed: ${statusCode} ${text}`)
}
