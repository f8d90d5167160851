import autocannon, { type Options, type Result } from 'autocannon'
import { type Behaviour, type KnownServer, startKnownServer } from './server.ts'

/** A figure that autocannon reports, and the true figure. */
export interface Finding {
  /** The options, and the name of the figure. */
  what: string
  truth: string
  reported: string
  /** The cause in autocannon's source. */
  cause: string
  /** Whether the reported figure is wrong. */
  wrong: boolean
}

const CONNECTIONS = 10
const RATE = 100
const WINDOW_MS = 100

const BURSTS =
  'each connection sends all its requests of a second at once, then waits (lib/httpClient.js)'
const INTERVAL =
  'the expected interval is computed as ceil(1/rate) = 1 ms, so a response after 20 ms is recorded as 20, 19 … 1 ms (lib/run.js)'
const DROPPED = 'it reconnects before it reports the response (lib/httpClient.js)'
const RESENT =
  'it sends a request on the connection that is being closed, and measures the next answer from that lost request (lib/httpClient.js)'

const milliseconds = (value: number) => `${Math.round(value)} ms`

/**
 * Runs autocannon against servers with known behaviour, all at the same time.
 *
 * @param seconds per run, at least 2, because its fixed rate counts whole seconds.
 */
export async function findDefects(seconds: number): Promise<Finding[]> {
  const atRate = { duration: seconds, connections: CONNECTIONS, overallRate: RATE }
  const stall = { fromMs: 900, toMs: 900 + 400 * seconds }
  const uncorrected = { ...atRate, ignoreCoordinatedOmission: true }
  const found = await Promise.all([
    against({ delayMs: 20 }, atRate, constantDelay),
    against({ delayMs: 5, stall }, atRate, (run) => afterStall(run, 'p50', stall, seconds)),
    against({ delayMs: 5, stall }, uncorrected, (run) => afterStall(run, 'p75', stall, seconds)),
    against({ delayMs: 5 }, { connections: 1, amount: 100, reconnectRate: 4 }, reconnecting),
    against(
      { delayMs: 5 },
      { duration: seconds, connections: 4, headers: { connection: 'close' } },
      closing,
    ),
  ])
  return found.flat()
}

interface Run {
  server: KnownServer
  result: Result
}

async function against(
  behaviour: Behaviour,
  options: Omit<Options, 'url'>,
  judge: (run: Run) => Finding[],
): Promise<Finding[]> {
  const server = await startKnownServer(behaviour)
  try {
    return judge({ server, result: await autocannon({ url: server.url, ...options }) })
  } finally {
    await server.close()
  }
}

function constantDelay({ server, result }: Run): Finding[] {
  const { arrivals } = server
  const most = Math.max(
    ...arrivals.map((from) => arrivals.filter((at) => at >= from && at < from + WINDOW_MS).length),
  )
  const even = (RATE * WINDOW_MS) / 1_000
  const { sent } = result.requests
  return [
    {
      what: `-R ${RATE}: most requests within ${WINDOW_MS} ms`,
      truth: String(even),
      reported: String(most),
      cause: BURSTS,
      wrong: most > 2 * even,
    },
    {
      what: `-R ${RATE}, no answer faster than 20 ms: p50`,
      truth: 'at least 20 ms',
      reported: milliseconds(result.latency.p50),
      cause: INTERVAL,
      wrong: result.latency.p50 < 20,
    },
    {
      what: `-R ${RATE}: requests sent`,
      truth: String(arrivals.length),
      reported: String(sent),
      cause: 'it adds the rate for the first request of each connection (lib/run.js)',
      wrong: sent > arrivals.length + CONNECTIONS,
    },
  ]
}

function afterStall(
  { result }: Run,
  percentile: 'p50' | 'p75',
  stall: { fromMs: number; toMs: number },
  seconds: number,
): Finding[] {
  const truth = latenciesAtEvenRate(stall, seconds)
  const share = percentile === 'p50' ? 0.5 : 0.75
  const expected = truth[Math.floor(share * truth.length)] ?? 0
  const reported = result.latency[percentile]
  const corrected = percentile === 'p50'
  const length = (stall.toMs - stall.fromMs) / 1_000
  return [
    {
      what: `-R ${RATE}${corrected ? '' : ' -C'}, answers in 5 ms but none for ${length} s: ${percentile}`,
      truth: milliseconds(expected),
      reported: milliseconds(reported),
      cause: corrected
        ? INTERVAL
        : 'the figures omit requests that are not sent because of the stall (coordinated omission)',
      wrong: corrected ? reported > 10 * expected : reported < expected / 3,
    },
  ]
}

/** The true latencies of evenly spaced requests, from when each was due, in ascending order. */
function latenciesAtEvenRate(stall: { fromMs: number; toMs: number }, seconds: number): number[] {
  const between = 1_000 / RATE
  return Array.from({ length: seconds * RATE }, (_, index) => {
    const due = index * between
    return due >= stall.fromMs && due < stall.toMs ? stall.toMs - due + 5 : 5
  }).toSorted((a, b) => a - b)
}

function reconnecting({ server, result }: Run): Finding[] {
  return [
    {
      what: 'reconnectRate 4: responses',
      truth: String(server.answered),
      reported: String(result['2xx']),
      cause: DROPPED,
      wrong: result['2xx'] < server.answered,
    },
  ]
}

function closing({ server, result }: Run): Finding[] {
  const { sent } = result.requests
  return [
    {
      what: 'Connection: close, answers in 5 ms: p50',
      truth: 'about 5 ms',
      reported: milliseconds(result.latency.p50),
      cause: RESENT,
      wrong: result.latency.p50 > 50,
    },
    {
      what: 'Connection: close: requests sent',
      truth: String(server.arrivals.length),
      reported: String(sent),
      cause: RESENT,
      wrong: sent > 1.5 * server.arrivals.length,
    },
  ]
}
