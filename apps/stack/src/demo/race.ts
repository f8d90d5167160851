import { once } from 'node:events'
import { strategyNames } from '@onetrip/session-store'
import { GENERATOR_LIMIT } from '../measure/generator-limit.ts'
import { summaryOf as latencySummary, together } from '../measure/latencies.ts'
import { readFamilyCpu, readMachineCpu, shareElsewhere } from '../measure/machine-cpu.ts'
import { usageDuring } from '../measure/usage.ts'
import { messageOf, Problem } from '../problem.ts'
import { endOf } from '../program.ts'
import { RedisMonitor } from '../redis-info.ts'
import { startRelay } from '../relay/process.ts'
import type { Pair, RaceLimits, Started, Turn } from './events.ts'
import type { RaceFeed } from './feed.ts'
import { type GeneratorResult, startGenerator } from './generator-process.ts'
import { type Lane, Lanes } from './lanes.ts'
import { raceItems, withSessions } from './sessions.ts'
import { summaryOf } from './summary.ts'

export const raceLimits: RaceLimits = {
  strategies: strategyNames,
  connections: { default: 64, minimum: 1, maximum: 256 },
  distancesMs: [0, 0.3, 1, 5, 48],
  rounds: 5,
  turnSeconds: 1,
}

const WARM_UP_SECONDS = 1
/** Nothing takes so long; what does is not waited for. */
const MAX_RACE_MS = 180_000

export interface RaceOptions {
  /** With the user that the APIs have. */
  redisUrl: string
  /** With a user that may ask INFO. */
  monitorUrl: string
  /** Signs the tokens of the race's sessions. */
  sessionSecret: string
}

/** One turn of a lane, and what it left to sum up. */
interface Measured {
  turn: Turn
  result: GeneratorResult
}

/** Runs races between two lanes, which take turns: at the same time they would slow each other down. */
export class RaceTrack {
  readonly #options: RaceOptions
  readonly #feed: RaceFeed
  readonly #lanes: Lanes

  constructor(options: RaceOptions, feed: RaceFeed) {
    this.#options = options
    this.#feed = feed
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
   * Runs a race and publishes its further events, the last of which is `done` or `failed`. One at a time.
   * Never rejects.
   *
   * @param signal ends it early.
   */
  async run(started: Started, signal: AbortSignal): Promise<void> {
    const over = new AbortController()
    const timeout = AbortSignal.timeout(MAX_RACE_MS)
    try {
      await this.#race(started, AbortSignal.any([signal, timeout, over.signal]), (error) =>
        over.abort(error),
      )
    } catch (error) {
      // What ended the race explains errors that followed from it.
      const reason = over.signal.aborted
        ? over.signal.reason
        : signal.aborted
          ? signal.reason
          : error
      const message = timeout.aborted ? 'The race took too long.' : messageOf(reason)
      this.#feed.publish({ name: 'failed', data: { id: started.id, message } })
    }
  }

  /** Not while a race runs. */
  stop(): Promise<void> {
    return this.#lanes.stop()
  }

  async #race(started: Started, signal: AbortSignal, fail: (error: Error) => void): Promise<void> {
    await using undo = new AsyncDisposableStack()
    const { redisUrl, monitorUrl, sessionSecret } = this.#options
    const monitor = await RedisMonitor.connect(monitorUrl)
    undo.defer(() => monitor.close())
    void monitor.lost.then(() =>
      fail(new Problem('Redis closed the connection: it was stopped, or it died.')),
    )
    const starting = () =>
      this.#feed.publish({
        name: 'preparing',
        data: { text: `Starting an API with ${started.lanes.join(', and one with ')}` },
      })
    const { connections } = started
    await this.#lanes.use(started, { signal, starting }, async (lanes, areNew) => {
      for (const { api } of lanes) {
        void api.exited.then(async () => fail(await endOf(api)))
      }
      const generator = await startGenerator(signal)
      undo.defer(async () => void (await generator.program.stop()))
      await withSessions(
        { redisUrl, secret: sessionSecret, count: connections },
        async (tokens) => {
          const run = async (lane: Lane, seconds: number, round: number) => {
            const { url } = lane
            const options = { ...raceItems, tokens, connections, seed: round + 1, url, seconds }
            const index = lanes.indexOf(lane) as 0 | 1
            return await unlessAborted(
              signal,
              generator.run(options, (sample) => {
                if (round > 0) {
                  this.#feed.publish({ name: 'sample', data: { lane: index, round, ...sample } })
                }
              }),
            )
          }
          if (areNew) {
            this.#feed.publish({ name: 'preparing', data: { text: 'Warming up' } })
            for (const lane of lanes) await run(lane, WARM_UP_SECONDS, 0)
          }
          await this.#rounds(started, { lanes, monitor, signal, run })
        },
      )
    })
  }

  async #rounds(
    started: Started,
    {
      lanes,
      monitor,
      signal,
      run,
    }: {
      lanes: Pair<Lane>
      monitor: RedisMonitor
      signal: AbortSignal
      run(lane: Lane, seconds: number, round: number): Promise<GeneratorResult>
    },
  ): Promise<void> {
    const measured: Measured[] = []
    let [elsewhere, all] = [0, 0]
    for (let round = 1; round <= started.rounds; round++) {
      const order = round % 2 === 1 ? ([0, 1] as const) : ([1, 0] as const)
      for (const index of order) {
        const lane = lanes[index]
        const before = [await readMachineCpu(), await readFamilyCpu(process.pid)] as const
        const { result, usage } = await unlessAborted(
          signal,
          usageDuring({ url: lane.url, monitor, signal }, () =>
            run(lane, started.turnSeconds, round),
          ),
        )
        const own = ((await readFamilyCpu(process.pid)) ?? 0) - (before[1] ?? 0)
        const share = shareElsewhere(before[0], await readMachineCpu(), own + usage.redisCpuSeconds)
        if (share !== null) {
          elsewhere += share
          all++
        }
        const turn = turnOf(index, round, result, usage)
        measured.push({ turn, result })
        this.#feed.publish({ name: 'turn', data: turn })
      }
    }
    const of = (lane: 0 | 1) => measured.filter(({ turn }) => turn.lane === lane)
    const latencies = (lane: 0 | 1) => {
      const { p50, p99 } = latencySummary(together(of(lane).map(({ result }) => result.histogram)))
      return { p50Ms: p50, p99Ms: p99 }
    }
    const isBusy = (lane: 0 | 1) =>
      of(lane).some(({ result }) => result.generator.utilization >= GENERATOR_LIMIT)
    const summary = summaryOf(started, {
      turns: measured.map(({ turn }) => turn),
      latencies: [latencies(0), latencies(1)],
      elsewhere: all > 0 ? elsewhere / all : null,
      generatorBusy: [isBusy(0), isBusy(1)],
    })
    this.#feed.publish({ name: 'done', data: summary })
  }
}

function turnOf(
  lane: 0 | 1,
  round: number,
  { seconds, ok, errors, latency }: GeneratorResult,
  usage: Awaited<ReturnType<typeof usageDuring>>['usage'],
): Turn {
  return {
    ...{ lane, round, seconds },
    requests: ok,
    requestsPerSecond: ok / seconds,
    p50Ms: latency.p50,
    p99Ms: latency.p99,
    errors: Object.values(errors).reduce((sum, count) => sum + count, 0),
    connectionsOpened: usage.connectionsOpened,
    roundTrips: usage.roundTrips,
    commands: usage.commands,
    redisCpuUs: usage.redisCpuSeconds * 1e6,
    apiCpuUs: usage.apiCpuSeconds * 1e6,
  }
}

/** @throws the reason of the signal, as soon as it is aborted. */
async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  signal.throwIfAborted()
  const done = new AbortController()
  const aborted = once(signal, 'abort', { signal: done.signal }).then(() => {
    throw signal.reason
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    done.abort()
    aborted.catch(() => {})
    work.catch(() => {})
  }
}
