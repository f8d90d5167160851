import autocannon, { type Instance, type Result } from 'autocannon'
import { requireOwnHost } from '../address.ts'
import { encoded, latencyHistogram, record, summaryOf } from './latencies.ts'
import { type SpeedSample, sampleSpeed } from './speed.ts'
import { type Call, TIMEOUT_S } from './workload.ts'

// The only file that uses autocannon, and only for saturation: with a fixed rate, version 9 reports wrong
// latencies and sends in bursts (docs/measurements/autocannon.md). Latencies are taken from its events.

interface SaturationOptions {
  url: string
  owned: boolean
  calls: readonly (readonly Call[])[]
  seconds: number
  signal: AbortSignal
  /** Waits for requests in flight at the end, and counts them. Default: they are aborted. */
  finish?: boolean
  /** Called every 250 ms. */
  onSample?: (sample: SpeedSample) => void
}

/**
 * Sends requests on connections; each connection sends its next request when the previous one was answered.
 *
 * @param options `url`: the API, which must be on this machine unless `owned` is true. `calls`: the requests of
 *   each connection, sent repeatedly. `signal` ends the run early.
 * @returns the duration; requests that may have reached the API (`sent`); requests answered with 2xx (`ok`); all
 *   others by status (`503`), error code (`ECONNREFUSED`), `timeout` or `lost`; latencies from the sending of a
 *   request to the end of its response, and their encoded histogram; and, for this process (`generator`), CPU
 *   seconds and utilization.
 */
export async function saturateByAutocannon(options: SaturationOptions) {
  const { url, owned, calls, seconds, signal, finish = false, onSample } = options
  requireOwnHost(url, owned)
  const latencies = latencyHistogram()
  const errors: Record<string, number> = {}
  let [answered, ok, failures, lastAnswerAt] = [0, 0, 0, 0]
  const countError = (kind: string) => {
    errors[kind] = (errors[kind] ?? 0) + 1
  }

  const clients: { responseMax?: number }[] = []
  let connection = 0
  const run = autocannon({
    url,
    connections: calls.length,
    duration: finish ? seconds + TIMEOUT_S + 1 : seconds,
    sampleInt: 50, // how often it checks for the end and for stop(), in milliseconds
    timeout: TIMEOUT_S,
    setupClient(client) {
      clients.push(client as object)
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
    lastAnswerAt = performance.now()
    if (status >= 200 && status < 300) ok++
    else countError(String(status))
    // The latency of a connection's first request includes the preparation of the other connections.
    if (warm.size < calls.length && !warm.has(client)) warm.add(client)
    else {
      record(latencies, milliseconds)
      sampler?.record(milliseconds)
    }
  })
  run.on('reqError', (error: NodeJS.ErrnoException) => {
    failures++
    countError(error.message === 'request timed out' ? 'timeout' : (error.code ?? 'error'))
  })

  // autocannon() has already started to connect and to send the first requests.
  const startedAt = performance.now()
  const cpu = process.cpuUsage()
  const utilization = performance.eventLoopUtilization()
  const sampler = onSample && sampleSpeed({ startedAt, everyMs: 250, answered: () => ok, onSample })
  // With responseMax, a client closes its connection after the next response. autocannon ends with its last client.
  const stopSending = () => {
    sampler?.stop()
    if (finish) for (const client of clients) client.responseMax = 1
  }
  const end = setTimeout(stopSending, seconds * 1_000)
  const stop = () => run.stop()
  signal.addEventListener('abort', stop)
  if (signal.aborted) stop()
  const { sent } = (await run).requests
  signal.removeEventListener('abort', stop)
  clearTimeout(end)
  sampler?.stop()
  const used = process.cpuUsage(cpu)
  const { utilization: busy } = performance.eventLoopUtilization(utilization)

  // autocannon reconnects silently when the API closes a connection. At the end, the one request in flight on
  // each connection is aborted; it does not count as lost.
  const lost = sent - answered - failures - (finish && !signal.aborted ? 0 : calls.length)
  if (lost > 0) errors.lost = lost
  const endedAt = finish && answered > 0 ? lastAnswerAt : performance.now()
  return {
    seconds: (endedAt - startedAt) / 1_000,
    sent: sent - failures + (errors.timeout ?? 0),
    ok,
    errors,
    latency: summaryOf(latencies),
    histogram: encoded(latencies),
    generator: { cpuSeconds: (used.user + used.system) / 1e6, utilization: busy },
  }
}
