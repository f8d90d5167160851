import { createHistogram } from 'node:perf_hooks'
import autocannon, { type Options, type Result } from 'autocannon'
import { isLocal } from '../stack/address.ts'
import { type Saturate, TIMEOUT_S } from './generator.ts'

// The only file that knows autocannon. It is used for saturation only: with a fixed rate, version 9
// reports wrong latencies and sends in bursts, and `reconnectRate` drops responses (docs and
// shared/design.md, section 8). Latencies are taken from its events, in microseconds, and times from
// when its connections begin to work, not from when it begins to prepare them; the first answer of each
// connection is left out of the latencies.

export const saturateByAutocannon: Saturate = async (options) => {
  const { url, owned, views, seconds, signal, onProgress } = options
  if (!owned && !isLocal(url)) throw new Error(`load only goes to this machine, not to ${url}`)
  const latencies = createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 })
  const statuses = new Map<string, number>()
  const failures = new Map<string, number>()
  const count = (counts: Map<string, number>, kind: string) =>
    counts.set(kind, (counts.get(kind) ?? 0) + 1)
  const answers = () => sum(statuses.values())

  let connection = 0
  const finished = Promise.withResolvers<Result>()
  const settings: Options = {
    url: `${url}/views`,
    method: 'POST',
    connections: views.length,
    duration: seconds,
    sampleInt: 50, // it ends, and hears stop(), on this beat
    timeout: TIMEOUT_S,
    setupClient(client) {
      client.setRequests(
        (views[connection++] ?? []).map(({ token, item }) => ({
          method: 'POST',
          path: '/views',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: JSON.stringify({ item }),
        })),
      )
    },
  }
  const run = autocannon(settings, (error: Error | null, result) => {
    if (error) finished.reject(error)
    else finished.resolve(result)
  })
  const warm = new Set<object>()
  run.on('response', (client, status, _bytes, milliseconds) => {
    count(statuses, String(status))
    // The clock of a connection's first request ran while the other connections were prepared.
    if (warm.size < views.length && !warm.has(client)) warm.add(client)
    else latencies.record(Math.max(1, Math.round(milliseconds * 1_000)))
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
    })
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
  const lost = sent - answers() - sum(failures.values()) - views.length
  if (lost > 0) failures.set('lost', lost)
  const ok = sum([...statuses].filter(([status]) => status.startsWith('2')).map(([, n]) => n))
  const bad = [...statuses].filter(([status]) => !status.startsWith('2'))
  const milliseconds = (microseconds: number) => microseconds / 1_000
  const any = latencies.count > 0
  const percentile = (share: number) => (any ? milliseconds(latencies.percentile(share)) : 0)
  return {
    seconds: (performance.now() - startedAt) / 1_000,
    sent: sent - unsent,
    ok,
    errors: Object.fromEntries([...bad, ...failures].toSorted(([, a], [, b]) => b - a)),
    latency: {
      p50: percentile(50),
      p90: percentile(90),
      p99: percentile(99),
      p999: percentile(99.9),
      max: any ? milliseconds(latencies.max) : 0,
      mean: any ? milliseconds(latencies.mean) : 0,
    },
    generator: {
      cpuSeconds: (used.user + used.system) / 1e6,
      utilization: busy,
    },
  }
}

function sum(numbers: Iterable<number>): number {
  let total = 0
  for (const number of numbers) total += number
  return total
}
