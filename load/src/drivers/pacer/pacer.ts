import { parentPort } from 'node:worker_threads'
import { messageOf } from '@onetrip/stack/problem.ts'
import type { Progress } from '../http/generator.ts'
import type { Call } from '../http/workload.ts'
import { Connection } from './connection.ts'
import { encoded, latencyHistogram, record } from './latencies.ts'
import { prepareTicker, sharedNow } from './ticking.ts'

// The thread that sends: nothing that the command prints or reads can delay it.

export interface PaceOptions {
  /** Of the API. */
  url: string
  /** What each connection sends; the number of lists is the number of connections. */
  calls: readonly (readonly Call[])[]
  /** When requests are due, in milliseconds since the start, ascending; in shared memory. */
  schedule: Float64Array
}

/** What came of keeping to a schedule; `due` is the sum of `ok`, `notSent` and all errors. */
export interface Paced {
  due: number
  /** Answered with 2xx. */
  ok: number
  /** Not sent by the end of the run, because no connection was free. */
  notSent: number
  /** All others, by status (`503`), error code (`ECONNREFUSED`), or `timeout`. */
  errors: Record<string, number>
  /** Requests that may have reached the API, including those that opened the connections. */
  sent: number
  /** From the start to the last answer. */
  seconds: number
  /** Encoded; of the requests answered with 2xx, from when each was due to the end of its answer. */
  latencies: string
  /** Encoded; from due to sent, of the requests for which a connection was free when they were due. */
  lateness: string
  /** The most requests that were due and waited for a connection at the same time. */
  longestLine: number
  /** CPU seconds of this process, all threads; share of the time, 0 to 1, in which this thread was busy. */
  generator: { cpuSeconds: number; utilization: number }
}

/** What happened since the last message, about a second ago. */
export interface PaceProgress extends Progress {
  /** Of the answers with 2xx, in milliseconds; NaN where there was none. */
  p99: number
  /** Requests that are due and wait for a connection, just now. */
  line: number
}

export interface FromPacer {
  progress?: PaceProgress
  paced?: Paced
  error?: string
}

/** After the last request was due, those that still wait are sent for so long. */
const GRACE_MS = 1_000
const PROGRESS_MS = 1_000
const SOON_MS = 20

/** Sends requests when they are due, over connections of its own, and waits for none of them. */
class Pacer {
  readonly #schedule: Float64Array
  readonly #connections: readonly Connection[]
  readonly #latencies = latencyHistogram()
  readonly #lateness = latencyHistogram()
  readonly #recent = latencyHistogram()
  readonly #errors: Record<string, number> = {}
  readonly #free: Connection[] = []
  readonly #finished = Promise.withResolvers<void>()
  #failures = 0
  #start = 0
  /** The first request that has not been sent, and the first that is not due yet. */
  #next = 0
  #upcoming = 0
  #longestLine = 0
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
  async run(onProgress: (progress: PaceProgress) => void): Promise<Paced> {
    const ticker = await prepareTicker(this.#schedule)
    const timers: NodeJS.Timeout[] = []
    try {
      await this.#open()
      const cpu = process.cpuUsage()
      const utilization = performance.eventLoopUtilization()
      this.#start = sharedNow() + SOON_MS
      this.#freeSince = this.#start
      const last = SOON_MS + (this.#schedule.at(-1) ?? 0)
      timers.push(setTimeout(() => this.#giveUp(), last + GRACE_MS))
      timers.push(setInterval(() => onProgress(this.#progress()), PROGRESS_MS))
      ticker.start(this.#start, () => this.#sendDue())
      await this.#finished.promise
      const seconds = (sharedNow() - this.#start) / 1_000
      const used = process.cpuUsage(cpu)
      const { utilization: busy } = performance.eventLoopUtilization(utilization)
      return {
        due: this.#schedule.length,
        ok: this.#latencies.totalCount,
        notSent: this.#schedule.length - this.#next,
        errors: this.#errors,
        sent: this.#connections.length + this.#next,
        seconds,
        latencies: encoded(this.#latencies),
        lateness: encoded(this.#lateness),
        longestLine: this.#longestLine,
        generator: { cpuSeconds: (used.user + used.system) / 1e6, utilization: busy },
      }
    } finally {
      for (const timer of timers) clearTimeout(timer)
      await ticker.stop()
      await Promise.all(this.#connections.map((connection) => connection.close()))
    }
  }

  /** Has each connection send a request that does not count, and waits for all of the answers. */
  async #open(): Promise<void> {
    const outcomes = await Promise.all(this.#connections.map((connection) => connection.send()))
    const isStatus = (outcome: string) => /^\d+$/.test(outcome)
    if (!outcomes.some(isStatus)) throw new Error(outcomes[0])
    this.#free.push(...this.#connections)
  }

  /** Sends what is due, as far as there are free connections. */
  #sendDue(): void {
    const elapsed = sharedNow() - this.#start
    const due = this.#schedule
    while (this.#upcoming < due.length && (due[this.#upcoming] ?? 0) <= elapsed) this.#upcoming++
    while (this.#next < this.#upcoming && !this.#givenUp) {
      const connection = this.#free.shift()
      if (!connection) break
      void this.#send(connection, this.#start + (due[this.#next++] ?? 0))
    }
    this.#longestLine = Math.max(this.#longestLine, this.#line)
  }

  get #line(): number {
    return this.#givenUp ? 0 : this.#upcoming - this.#next
  }

  async #send(connection: Connection, due: number): Promise<void> {
    const outcome = await connection.send(() => {
      if (due >= this.#freeSince) record(this.#lateness, sharedNow() - due)
    })
    const now = sharedNow()
    if (outcome.startsWith('2')) {
      record(this.#latencies, now - due)
      record(this.#recent, now - due)
    } else {
      this.#errors[outcome] = (this.#errors[outcome] ?? 0) + 1
      this.#failures++
    }
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

  #progress(): PaceProgress {
    const recent = this.#recent
    const progress = {
      requestsPerSecond: recent.totalCount / (PROGRESS_MS / 1_000),
      p99: recent.totalCount > 0 ? recent.getValueAtPercentile(99) / 1_000 : Number.NaN,
      line: this.#line,
      failures: this.#failures,
    }
    recent.reset()
    this.#failures = 0
    return progress
  }
}

parentPort?.on('message', async (options: PaceOptions) => {
  const post = (message: FromPacer) => parentPort?.postMessage(message)
  try {
    post({ paced: await new Pacer(options).run((progress) => post({ progress })) })
  } catch (error) {
    post({ error: messageOf(error) })
  }
})
