import { once } from 'node:events'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { requireOwnHost } from '@onetrip/stack/address.ts'
import { encoded, latencyHistogram, record } from '@onetrip/stack/measure/latencies.ts'
import { type SpeedSample, sampleSpeed } from '@onetrip/stack/measure/speed.ts'
import type { Call } from '@onetrip/stack/measure/workload.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { Connection } from './connection.ts'
import { prepareTicker, sharedNow } from './ticker.ts'

interface PaceOptions {
  /** Of the API. */
  url: string
  /** What each connection sends; the number of lists is the number of connections. */
  calls: readonly (readonly Call[])[]
  /** When requests are due, in milliseconds since the start, ascending; in shared memory. */
  schedule: Float64Array
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

type Paced = Awaited<ReturnType<typeof pace>>

/**
 * Sends requests when they are due, over connections of its own, and waits for none of them.
 *
 * @returns `due` is the sum of `ok` (answered with 2xx), `notSent` (no connection was free by the end of the
 *   run) and all errors, by status (`503`), code (`ECONNREFUSED`) or `timeout`; `sent` may have reached the
 *   API, with those that opened the connections. `latencies`, of those that are ok, are from when each was
 *   due to the end of its answer; `lateness` is from due to sent, where a connection was free; both encoded.
 * @throws Error when no connection can be opened.
 */
async function pace({ url, calls, schedule }: PaceOptions) {
  const connections = calls.map((list) => new Connection(url, list))
  const [latencies, lateness] = [latencyHistogram(), latencyHistogram()]
  const errors: Record<string, number> = {}
  const free: Connection[] = []
  const finished = Promise.withResolvers<void>()
  const samples: SpeedSample[] = []
  let sampler: ReturnType<typeof sampleSpeed> | undefined
  let [start, next, givenUp] = [0, 0, false]
  let freeSince = 0 // since when there has always been a free connection

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
    if (outcome.startsWith('2')) {
      record(latencies, now - due)
      sampler?.record(now - due)
    } else errors[outcome] = (errors[outcome] ?? 0) + 1
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
    // Each connection opens with a request that does not count.
    const outcomes = await Promise.all(connections.map((connection) => connection.send()))
    if (!outcomes.some((outcome) => /^\d+$/.test(outcome))) throw new Error(outcomes[0])
    free.push(...connections)
    const cpu = process.cpuUsage()
    const utilization = performance.eventLoopUtilization()
    start = sharedNow() + SOON_MS
    freeSince = start
    setTimeout(giveUp, SOON_MS + (schedule.at(-1) ?? 0) + GRACE_MS)
    const sampling = setTimeout(() => {
      sampler = sampleSpeed({
        ...{ startedAt: performance.now(), everyMs: 1_000, answered: () => latencies.totalCount },
        onSample: (sample) => void samples.push(sample),
      })
    }, SOON_MS)
    ticker.start(start, sendDue)
    await finished.promise
    clearTimeout(sampling)
    sampler?.stop()
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
      samples,
      generator: { cpuSeconds: (user + system) / 1e6, utilization: busy },
    }
  } finally {
    sampler?.stop()
    await ticker.stop()
    await Promise.all(connections.map((connection) => connection.close()))
  }
}

if (workerData?.paces) {
  parentPort?.on('message', async (options: PaceOptions) => {
    parentPort?.postMessage(await pace(options).catch(messageOf))
  })
}
