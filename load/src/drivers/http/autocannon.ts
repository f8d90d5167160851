import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import { isLocal } from '@onetrip/stack/address.ts'
import autocannon, { type Options, type Result } from 'autocannon'
import { type Latency, percentilesOf, type Saturate, TIMEOUT_S } from './generator.ts'
import { headersOf } from './workload.ts'

// The only file that knows autocannon. It is used for saturation only: with a fixed rate, version 9
// reports wrong latencies and sends in bursts, and `reconnectRate` drops responses (docs and
// shared/design.md, section 8). Latencies are taken from its events, in microseconds, and times from
// when its connections begin to work, not from when it begins to prepare them; the first answer of each
// connection is left out of the latencies.

export const saturateByAutocannon: Saturate = async (options) => {
  const { url, owned, calls, seconds, signal, onProgress } = options
  if (!owned && !isLocal(url)) throw new Error(`load only goes to this machine, not to ${url}`)
  const newHistogram = () => createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 })
  const latencies = newHistogram()
  const latest = newHistogram() // since the last progress
  const bytes = { sent: 0, received: 0 }
  const statuses = new Map<string, number>()
  const failures = new Map<string, number>()
  const count = (counts: Map<string, number>, kind: string) =>
    counts.set(kind, (counts.get(kind) ?? 0) + 1)
  const answers = () => sum(statuses.values())

  let connection = 0
  const finished = Promise.withResolvers<Result>()
  const settings: Options = {
    url,
    connections: calls.length,
    duration: seconds,
    sampleInt: 50, // it ends, and hears stop(), on this beat
    timeout: TIMEOUT_S,
    setupClient(client) {
      client.setRequests(
        (calls[connection++] ?? []).map((call) => ({
          method: call.method,
          path: call.path,
          headers: headersOf(call),
          ...(call.body !== null && { body: call.body }),
        })),
      )
    },
  }
  const run = autocannon(settings, (error: Error | null, result) => {
    if (error) finished.reject(error)
    else finished.resolve(result)
  })
  const warm = new Set<object>()
  run.on('response', (client, status, received, milliseconds) => {
    count(statuses, String(status))
    bytes.received += received
    bytes.sent += (client as unknown as RequestHolder).getRequestBuffer().length
    // The clock of a connection's first request ran while the other connections were prepared.
    if (warm.size < calls.length && !warm.has(client)) warm.add(client)
    else {
      const microseconds = Math.max(1, Math.round(milliseconds * 1_000))
      latencies.record(microseconds)
      if (onProgress) latest.record(microseconds)
    }
  })
  run.on('reqError', (error: NodeJS.ErrnoException) => {
    count(failures, error.message === 'request timed out' ? 'timeout' : (error.code ?? 'error'))
  })

  // Connecting, and the first request of each connection, was begun in the call above.
  const startedAt = performance.now()
  const cpu = process.cpuUsage()
  const utilization = performance.eventLoopUtilization()
  let reported = { at: startedAt, answers: 0, failures: 0 }
  const ticker = setInterval(() => {
    const now = { at: performance.now(), answers: answers(), failures: sum(failures.values()) }
    onProgress?.({
      requestsPerSecond: ((now.answers - reported.answers) * 1_000) / (now.at - reported.at),
      failures: now.failures - reported.failures,
      ...(latest.count > 0 && {
        p50: latest.percentile(50) / 1_000,
        p99: latest.percentile(99) / 1_000,
      }),
    })
    latest.reset()
    reported = now
  }, 1_000)
  const stop = () => run.stop()
  signal.addEventListener('abort', stop)
  if (signal.aborted) stop()
  let sent: number
  try {
    sent = (await finished.promise).requests.sent
  } finally {
    clearInterval(ticker)
    signal.removeEventListener('abort', stop)
  }
  const used = process.cpuUsage(cpu)
  const { utilization: busy } = performance.eventLoopUtilization(utilization)

  const timeouts = failures.get('timeout') ?? 0
  const unsent = sum(failures.values()) - timeouts
  // autocannon connects anew and says nothing when the API closes a connection; one request per
  // connection is still in flight at the end, and that is no loss.
  const lost = sent - answers() - sum(failures.values()) - calls.length
  if (lost > 0) failures.set('lost', lost)
  const ok = sum([...statuses].filter(([status]) => status.startsWith('2')).map(([, n]) => n))
  const bad = [...statuses].filter(([status]) => !status.startsWith('2'))
  return {
    seconds: (performance.now() - startedAt) / 1_000,
    sent: sent - unsent,
    answered: answers(),
    ok,
    errors: Object.fromEntries([...bad, ...failures].toSorted(([, a], [, b]) => b - a)),
    latency: latencyOf(latencies),
    bytes,
    generator: {
      cpuSeconds: (used.user + used.system) / 1e6,
      utilization: busy,
    },
  }
}

/** What the types of autocannon's client leave out: the request that was answered last. */
interface RequestHolder {
  getRequestBuffer(): Uint8Array
}

function latencyOf(histogram: RecordableHistogram): Latency {
  const milliseconds = (microseconds: number) =>
    histogram.count === 0 ? null : microseconds / 1_000
  return {
    ...percentilesOf((share) => milliseconds(histogram.percentile(share))),
    max: milliseconds(histogram.max),
    mean: milliseconds(histogram.mean),
  }
}

function sum(numbers: Iterable<number>): number {
  let total = 0
  for (const number of numbers) total += number
  return total
}
