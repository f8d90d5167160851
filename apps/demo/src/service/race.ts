import { cpus } from 'node:os'
import { strategyNames } from '@onetrip/api/strategies'
import { parseLocation } from '@onetrip/cluster'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { endOf } from '@onetrip/stack/program.ts'
import { monitorAll } from '@onetrip/stack/redis-monitors.ts'
import { startRelay } from '@onetrip/stack/relay/process.ts'
import { printError } from '@onetrip/stack/terminal.ts'
import type { RaceInput, RaceLimits, Started } from '../events.ts'
import type { RaceFeed } from './feed.ts'
import { Lanes } from './lanes.ts'
import { Results } from './results.ts'
import { runRounds, warmUp } from './rounds.ts'
import { raceItems, withSessions } from './sessions.ts'
import type { Summary } from './summary.ts'

export const raceLimits: RaceLimits = {
  strategies: [...strategyNames],
  connections: { default: 64, minimum: 1, maximum: 256 },
  distancesMs: [0, 0.3, 1, 5, 48],
  rounds: 5,
  turnSeconds: 0.75,
  wire: true,
}

/**
 * The limits on a cluster. No distance: clients learn the nodes' addresses from the nodes, so they would bypass a
 * relay, and so no wire. No `sequential` and `pipeline`, which are for one server.
 */
export const clusterRace: Partial<RaceLimits> = {
  strategies: ['naive', 'batch'],
  distancesMs: [0],
  wire: false,
}

const WARM_UP_SECONDS = 0.6
/** Timeout for INFO during a race. */
const REPLY_TIMEOUT_MS = 3_000
/** A race that takes longer hangs, and is ended. */
const MAX_RACE_MS = 180_000

export interface RaceOptions {
  /** The same URL as for the APIs. */
  redis: string
  /** URLs of Redis, or of each node of a cluster, with a user that may run INFO. */
  monitorUrls: readonly string[]
  /** Signs the tokens of the race's sessions. */
  sessionSecret: string
  /** Folder of the results. */
  results: string
}

/** The command line of a measurement with the requests of a race. */
export function commandOf({ lanes, connections, distanceMs }: RaceInput): string {
  const options = [
    `--variants ${[...new Set(lanes)].join(',')}`,
    `--connections ${connections}`,
    `--sessions ${connections} --items ${raceItems.items} --reads 0`,
    ...(distanceMs > 0 ? [`--links ${distanceMs}ms@unlimited`] : []),
  ]
  return `npm run load -- http ${options.join(' ')}`
}

/** Runs races between lanes. The lanes take turns, because they would slow each other down. */
export class RaceTrack {
  readonly #options: RaceOptions
  readonly #feed: RaceFeed
  readonly #lanes: Lanes
  readonly results: Results

  constructor(options: RaceOptions, feed: RaceFeed) {
    this.#options = options
    this.#feed = feed
    this.results = new Results(options.results)
    this.#lanes = new Lanes({
      ...options,
      async openLink(to, distanceMs) {
        if (distanceMs === 0) return undefined
        const relay = await startRelay({ to, roundTrip: `${distanceMs}ms` })
        return { address: relay.address, close: () => relay.stop() }
      },
    })
  }

  /**
   * Runs an announced race and publishes its events; the last one is `done` or `failed`. Calls must not overlap.
   * Never rejects.
   *
   * @param stopping ends the race early.
   */
  async run(started: Started, stopping: AbortSignal): Promise<void> {
    const broken = new AbortController()
    const timeout = AbortSignal.timeout(MAX_RACE_MS)
    const signal = AbortSignal.any([stopping, timeout, broken.signal])
    try {
      const data = await this.#race(started, signal, (error) => broken.abort(error))
      // In containers, no command in a terminal repeats it.
      const hasNone = parseLocation(this.#options.redis).cluster || process.env.OWN_HOST
      const command = hasNone ? null : commandOf(started)
      const machine = `${cpus()[0]?.model ?? 'unknown CPU'}, ${cpus().length} cores`
      const done = { ...data, date: new Date().toISOString(), machine, command }
      await this.results
        .save(done)
        .catch((error) => printError(`The result cannot be kept: ${messageOf(error)}`))
      this.#feed.publish({ name: 'done', data: done })
    } catch (error) {
      // The reason of an abort explains the errors that follow from it.
      const why = timeout.aborted ? 'The race took too long.' : messageOf(signal.reason ?? error)
      this.#feed.publish({ name: 'failed', data: { id: started.id, message: why } })
    }
  }

  /** Starts the lanes of the race that the page offers first, so that its figures come soon. Never rejects. */
  async prepare(signal: AbortSignal): Promise<void> {
    const wanted = { lanes: ['naive', 'batch'], distanceMs: 0 }
    await this.#lanes.prepare(wanted, signal).catch(() => {}) // the race says why
  }

  /** Stops the lanes. Must not be called during a race. */
  stop(): Promise<void> {
    return this.#lanes.stop()
  }

  async #race(
    started: Started,
    signal: AbortSignal,
    fail: (error: Error) => void,
  ): Promise<Summary> {
    await using undo = new AsyncDisposableStack()
    const { redis, monitorUrls, sessionSecret: secret } = this.#options
    const publish = this.#feed.publish.bind(this.#feed)
    const monitor = await monitorAll(monitorUrls, REPLY_TIMEOUT_MS)
    undo.defer(() => monitor.close())
    const lost = 'Redis closed the connection: it was stopped or has crashed.'
    void monitor.lost.then(() => fail(new Problem(lost)))
    const starting = () => {
      const text = `Starting an API with ${started.lanes.join(', and one with ')}`
      publish({ name: 'preparing', data: { text } })
    }
    return await this.#lanes.use(started, { signal, starting }, async (lanes, areNew) => {
      for (const { api } of lanes) void api.exited.then(async () => fail(await endOf(api)))
      const sessions = { redis, secret, count: started.connections }
      return await withSessions(sessions, async (tokens) => {
        const course = { started, lanes, tokens, monitor, publish, signal }
        if (areNew) await warmUp(course, WARM_UP_SECONDS)
        return await runRounds(course)
      })
    })
  }
}
