import { once } from 'node:events'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { requireOwnHost } from '@onetrip/stack/address.ts'
import { encoded, latencyHistogram, record } from '@onetrip/stack/measure/latencies.ts'
import type { Call } from '@onetrip/stack/measure/workload.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { Connection } from './connection.ts'
import { prepareTicker, sharedNow } from './ticker.ts'

interface PaceOptions {
  /** Of the API. */
  url: string
  /** One list of calls for each connection. */
  calls: readonly (readonly Call[])[]
  /** The times when requests are due, see `arrivalTimes`. */
  schedule: Float64Array
}

export type PacedGenerator = ReturnType<typeof startGenerator>

/** Starts a thread that sends requests when they are due. Work in the main thread does not delay it. */
export function startGenerator(signal: AbortSignal) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { paces: true } })
  return {
    /**
     * Runs a schedule. Only one schedule can run at a time.
     *
     * @param owned whether other hosts than this machine are allowed.
     * @throws Problem when the API accepts no connections; an AbortError of the generator's signal.
     */
    async run({ owned, ...options }: PaceOptions & { owned: boolean }): Promise<Paced> {
      requireOwnHost(options.url, owned)
      worker.postMessage(options)
      const [answer] = await once(worker, 'message', { signal })
      if (typeof answer !== 'string') return answer
      throw new Problem(`The API at ${options.url} accepts no connections: ${answer}`)
    },
    /** Ends the thread and aborts a run. */
    close: () => worker.terminate(),
  }
}

/** Waiting requests are still sent for this time after the last request was due. */
const GRACE_MS = 1_000
const SOON_MS = 20

type Paced = Awaited<ReturnType<typeof pace>>

/**
 * Opens connections and sends requests when they are due, without waiting for earlier answers.
 *
 * @returns `due` is the sum of `ok` (answered with 2xx), `notSent` (no connection was free until the end) and
 *   `errors`, by status (`503`), code (`ECONNREFUSED`) or `timeout`. `sent` is the number of requests that may have
 *   reached the API, including those that opened the connections. `latencies` are from when a request was due to the
 *   end of its answer, for `ok` requests. `lateness` is from when a request was due until it was sent, if a
 *   connection was free. Both histograms are encoded.
 * @throws Error when no connection can be opened.
 */
async function pace({ url, calls, schedule }: PaceOptions) {
  const connections = calls.map((list) => new Connection(url, list))
  const [latencies, lateness] = [latencyHistogram(), latencyHistogram()]
  const errors: Record<string, number> = {}
  const free: Connection[] = []
  const finished = Promise.withResolvers<void>()
  let [start, next, givenUp] = [0, 0, false]
  let freeSince = 0 // at least one connection has been free since this time

  const sendDue = () => {
    while (free.length > 0 && !givenUp) {
      const due = start + (schedule[next] ?? Number.POSITIVE_INFINITY)
      if (due > sharedNow()) break
      next++
      void send(free.shift() as Connection, due)
    }
    const nothingToSend = givenUp || next === schedule.length
    if (nothingToSend && free.length === connections.length) finished.resolve()
  }
  const send = async (connection: Connection, due: number) => {
    if (due >= freeSince) record(lateness, sharedNow() - due)
    const outcome = await connection.send()
    const now = sharedNow()
    if (outcome.startsWith('2')) record(latencies, now - due)
    else errors[outcome] = (errors[outcome] ?? 0) + 1
    if (free.length === 0) freeSince = now
    free.push(connection)
    sendDue()
  }
  const giveUp = () => {
    givenUp = true
    sendDue()
  }

  const ticker = await prepareTicker(schedule)
  try {
    // Connections are opened by a request that does not count.
    const outcomes = await Promise.all(connections.map((connection) => connection.send()))
    if (!outcomes.some((outcome) => /^\d+$/.test(outcome))) throw new Error(outcomes[0])
    free.push(...connections)
    const cpu = process.cpuUsage()
    const utilization = performance.eventLoopUtilization()
    start = sharedNow() + SOON_MS
    freeSince = start
    setTimeout(giveUp, SOON_MS + (schedule.at(-1) ?? 0) + GRACE_MS)
    ticker.start(start, sendDue)
    await finished.promise
    const { user, system } = process.cpuUsage(cpu)
    const busy = performance.eventLoopUtilization(utilization).utilization
    return {
      due: schedule.length,
      ok: latencies.totalCount,
      notSent: schedule.length - next,
      errors,
      sent: connections.length + next,
      latencies: encoded(latencies),
      lateness: encoded(lateness),
      generator: { cpuSeconds: (user + system) / 1e6, utilization: busy },
    }
  } finally {
    await ticker.stop()
    await Promise.all(connections.map((connection) => connection.close()))
  }
}

if (workerData?.paces) {
  parentPort?.on('message', async (options: PaceOptions) => {
    parentPort?.postMessage(await pace(options).catch(messageOf))
  })
}
