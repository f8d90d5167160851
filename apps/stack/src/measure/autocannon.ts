import autocannon, { type Instance, type Result } from 'autocannon'
import { requireOwnHost } from '../address.ts'
import { latencyHistogram, record, summaryOf } from './latencies.ts'
import { type Call, TIMEOUT_S } from './workload.ts'

// The only file that knows autocannon. It is used for saturation only: with a fixed rate, version 9
// reports wrong latencies and sends in bursts (docs/generators.md). Latencies are taken from its events.

interface SaturationOptions {
  url: string
  owned: boolean
  calls: readonly (readonly Call[])[]
  seconds: number
  signal: AbortSignal
}

/**
 * Sends requests over connections, each as soon as the connection's last one was answered.
 *
 * @param options `url` of the API, on this machine unless the user said that it is theirs (`owned`); what each
 *   connection sends, over and over (`calls`); `signal` ends the run early.
 * @returns how long it took; requests that may have reached the API (`sent`), and were answered with 2xx (`ok`);
 *   all others by status (`503`), error code (`ECONNREFUSED`), `timeout` or `lost`; latencies from the sending
 *   of a request to the end of its answer; what this process took: CPU seconds, and share of the time busy.
 */
export async function saturateByAutocannon(options: SaturationOptions) {
  const { url, owned, calls, seconds, signal } = options
  requireOwnHost(url, owned)
  const latencies = latencyHistogram()
  const errors: Record<string, number> = {}
  let [answered, ok, failures] = [0, 0, 0]
  const countError = (kind: string) => {
    errors[kind] = (errors[kind] ?? 0) + 1
  }

  let connection = 0
  const run = autocannon({
    url,
    connections: calls.length,
    duration: seconds,
    sampleInt: 50, // how often it checks for the end and for stop(), in milliseconds
    timeout: TIMEOUT_S,
    setupClient(client) {
      client.setRequests(
        (calls[connection++] ?? []).map(({ body, ...call }) =>
          body === null ? call : { ...call, body },
        ),
      )
    },
  }) as Promise<Result> & Instance
  const warm = new Set<object>()
  run.on('response', (client, status, _, milliseconds) => {
    answered++
    if (status >= 200 && status < 300) ok++
    else countError(String(status))
    // The clock of a connection's first request ran while the other connections were prepared.
    if (warm.size < calls.length && !warm.has(client)) warm.add(client)
    else record(latencies, milliseconds)
  })
  run.on('reqError', (error: NodeJS.ErrnoException) => {
    failures++
    countError(error.message === 'request timed out' ? 'timeout' : (error.code ?? 'error'))
  })

  // The call above has begun to connect and to send the first request of each connection.
  const startedAt = performance.now()
  const cpu = process.cpuUsage()
  const utilization = performance.eventLoopUtilization()
  const stop = () => run.stop()
  signal.addEventListener('abort', stop)
  if (signal.aborted) stop()
  const { sent } = (await run).requests
  signal.removeEventListener('abort', stop)
  const used = process.cpuUsage(cpu)
  const { utilization: busy } = performance.eventLoopUtilization(utilization)

  // autocannon reconnects silently when the API closes a connection. One request per connection is still
  // in flight at the end, and not lost.
  const lost = sent - answered - failures - calls.length
  if (lost > 0) errors.lost = lost
  return {
    seconds: (performance.now() - startedAt) / 1_000,
    sent: sent - failures + (errors.timeout ?? 0),
    ok,
    errors,
    latency: summaryOf(latencies),
    generator: { cpuSeconds: (used.user + used.system) / 1e6, utilization: busy },
  }
}
