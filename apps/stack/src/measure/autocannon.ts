import autocannon, { type Instance, type Result } from 'autocannon'
import { requireOwnHost } from '../address.ts'
import { encoded, latencyHistogram, record, summaryOf } from './latencies.ts'
import { type SpeedSample, sampleSpeed } from './speed.ts'
import { type Call, TIMEOUT_S } from './workload.ts'

// The only file that knows autocannon. It is used for saturation only: with a fixed rate, version 9
// reports wrong latencies and sends in bursts (docs/generators.md). Latencies are taken from its events.

interface SaturationOptions {
  url: string
  owned: boolean
  calls: readonly (readonly Call[])[]
  seconds: number
  signal: AbortSignal
  /** Waits for the requests that are in flight at the end, and counts them. Default: they are cut off. */
  finish?: boolean
  /** Called every `sampleMs` (default 250). */
  onSample?: (sample: SpeedSample) => void
  sampleMs?: number
}

/**
 * Sends requests over connections, each as soon as the connection's last one was answered.
 *
 * @param options `url` of the API, on this machine unless the user said that it is theirs (`owned`); what each
 *   connection sends, over and over (`calls`); `signal` ends the run early.
 * @returns how long it took; requests that may have reached the API (`sent`), and were answered with 2xx (`ok`);
 *   all others by status (`503`), error code (`ECONNREFUSED`), `timeout` or `lost`; latencies from the sending
 *   of a request to the end of its answer, and their encoded histogram; what this process took: CPU seconds,
 *   and share of the time busy.
 */
export async function saturateByAutocannon(options: SaturationOptions) {
  const { url, owned, calls, seconds, signal, finish = false, onSample, sampleMs = 250 } = options
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
    // The clock of a connection's first request ran while the other connections were prepared.
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

  // The call above has begun to connect and to send the first request of each connection.
  const startedAt = performance.now()
  const cpu = process.cpuUsage()
  const utilization = performance.eventLoopUtilization()
  const sampler =
    onSample && sampleSpeed({ startedAt, everyMs: sampleMs, answered: () => ok, onSample })
  // A client closes its connection after the next answer then, and autocannon ends with its last client.
  const sendNoMore = () => {
    sampler?.stop()
    if (finish) for (const client of clients) client.responseMax = 1
  }
  const end = setTimeout(sendNoMore, seconds * 1_000)
  const stop = () => run.stop()
  signal.addEventListener('abort', stop)
  if (signal.aborted) stop()
  const { sent } = (await run).requests
  signal.removeEventListener('abort', stop)
  clearTimeout(end)
  sampler?.stop()
  const used = process.cpuUsage(cpu)
  const { utilization: busy } = performance.eventLoopUtilization(utilization)

  // autocannon reconnects silently when the API closes a connection. One request per connection is still
  // in flight when it is cut off, and not lost.
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
