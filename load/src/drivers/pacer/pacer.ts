import { once } from 'node:events'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { requireOwnHost } from '@onetrip/stack/address.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import type { Call } from '../http/workload.ts'
import { Connection } from './connection.ts'
import { encoded, latencyHistogram, record } from './latencies.ts'
import { prepareTicker, sharedNow } from './ticker.ts'

interface PaceOptions {
  /** Of the API. */
  url: string
  /** What each connection sends; the number of lists is the number of connections. */
  calls: readonly (readonly Call[])[]
  /** When requests are due, in milliseconds since the start, ascending; in shared memory. */
  schedule: Float64Array
}

/** What came of keeping to a schedule; `due` is the sum of `ok`, `notSent` and all errors. */
interface Paced {
  due: number
  /** Answered with 2xx. */
  ok: number
  /** Not sent by the end of the run, because no connection was free. */
  notSent: number
  /** All others, by status (`503`), error code (`ECONNREFUSED`), or `timeout`. */
  errors: Record<string, number>
  /** Requests that may have reached the API, including those that opened the connections. */
  sent: number
  /** Encoded; of the requests answered with 2xx, from when each was due to the end of its answer. */
  latencies: string
  /** Encoded; from due to sent, of the requests for which a connection was free when they were due. */
  lateness: string
  /** CPU seconds of this process, all threads; share of the time, 0 to 1, in which this thread was busy. */
  generator: { cpuSeconds: number; utilization: number }
}

export type PacedGenerator = ReturnType<typeof startGenerator>

/** Starts a thread that sends requests when they are due: nothing that the command prints or reads delays it. */
export function startGenerator(signal: AbortSignal) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { paces: true } })
  return {
    /**
     * Runs a schedule; one at a time.
     *
     * @param owned whether the user said that the API's host is theirs, if it is not this machine.
     * @throws Problem when the API takes no connections; an AbortError of the generator's signal.
     */
    async run({ owned, ...options }: PaceOptions & { owned: boolean }): Promise<Paced> {
      requireOwnHost(options.url, owned)
      worker.postMessage(options)
      const [answer] = await once(worker, 'message', { signal })
      if (typeof answer !== 'string') return answer
      throw new Problem(`The API at ${options.url} takes no connections: ${answer}`)
    },
    /** Ends the thread, and with it a run. */
    close: () => worker.terminate(),
  }
}

/** After the last request was due, those that still wait are sent for so long. */
const GRACE_MS = 1_000
const SOON_MS = 20

/** Sends requests when they are due, over connections of its own, and waits for none of them. */
class Pacer {
  readonly #schedule: Float64Array
  readonly #connections: readonly Connection[]
  readonly #latencies = latencyHistogram()
  readonly #lateness = latencyHistogram()
  readonly #errors: Record<string, number> = {}
  readonly #free: Connection[] = []
  readonly #finished = Promise.withResolvers<void>()
  #start = 0
  /** The first request that has not been sent. */
  #next = 0
  /** Since when there has always been a free connection. */
  #freeSince = 0
  #givenUp = false

  constructor({ url, calls, schedule }: PaceOptions) {
    this.#schedule = schedule
    this.#connections = calls.map((list) => new Connection(url, list))
  }

  /**
   * Keeps to the schedule, once.
   *
   * @throws Error when no connection can be opened.
   */
  async run(): Promise<Paced> {
    const ticker = await prepareTicker(this.#schedule)
    try {
      await this.#open()
      const cpu = process.cpuUsage()
      const utilization = performance.eventLoopUtilization()
      this.#start = sharedNow() + SOON_MS
      this.#freeSince = this.#start
      setTimeout(() => this.#giveUp(), SOON_MS + (this.#schedule.at(-1) ?? 0) + GRACE_MS)
      ticker.start(this.#start, () => this.#sendDue())
      await this.#finished.promise
      const used = process.cpuUsage(cpu)
      const { utilization: busy } = performance.eventLoopUtilization(utilization)
      return {
        due: this.#schedule.length,
        ok: this.#latencies.totalCount,
        notSent: this.#schedule.length - this.#next,
        errors: this.#errors,
        sent: this.#connections.length + this.#next,
        latencies: encoded(this.#latencies),
        lateness: encoded(this.#lateness),
        generator: { cpuSeconds: (used.user + used.system) / 1e6, utilization: busy },
      }
    } finally {
      await ticker.stop()
      await Promise.all(this.#connections.map((connection) => connection.close()))
    }
  }

  /** Has each connection send a request that does not count, and waits for all of the answers. */
  async #open(): Promise<void> {
    const outcomes = await Promise.all(this.#connections.map((connection) => connection.send()))
    if (!outcomes.some((outcome) => /^\d+$/.test(outcome))) throw new Error(outcomes[0])
    this.#free.push(...this.#connections)
  }

  /** Sends what is due, as far as there are free connections. */
  #sendDue(): void {
    while (this.#free.length > 0 && !this.#givenUp) {
      const due = this.#start + (this.#schedule[this.#next] ?? Number.POSITIVE_INFINITY)
      if (due > sharedNow()) break
      this.#next++
      void this.#send(this.#free.shift() as Connection, due)
    }
  }

  async #send(connection: Connection, due: number): Promise<void> {
    if (due >= this.#freeSince) record(this.#lateness, sharedNow() - due)
    const outcome = await connection.send()
    const now = sharedNow()
    if (outcome.startsWith('2')) record(this.#latencies, now - due)
    else this.#errors[outcome] = (this.#errors[outcome] ?? 0) + 1
    if (this.#free.length === 0) this.#freeSince = now
    this.#free.push(connection)
    this.#sendDue()
    this.#finishIfDone()
  }

  #giveUp(): void {
    this.#givenUp = true
    this.#finishIfDone()
  }

  #finishIfDone(): void {
    const nothingToSend = this.#givenUp || this.#next === this.#schedule.length
    if (nothingToSend && this.#free.length === this.#connections.length) this.#finished.resolve()
  }
}

if (workerData?.paces) {
  parentPort?.on('message', async (options: PaceOptions) => {
    parentPort?.postMessage(await new Pacer(options).run().catch(messageOf))
  })
}
