import type { SessionStore } from '@onetrip/session-store'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { cpuBetween } from '../../drivers/redis/threads.ts'
import type { Run } from '../../experiment/experiment.ts'
import type { Measured } from '../../experiment/result.ts'
import {
  allWaiting,
  type NetworkSettings,
  OTHER_ADDRESS,
  setNetwork,
  timeWaitOf,
} from './network.ts'
import { callSteadily, kindOf, type Strategy, storeBy } from './views.ts'

export interface PortsOptions {
  /** Ports that clients may have. */
  ports: number
  /** Views asked for per second. */
  rate: number
  cases: string[]
}

/** A client, and the settings that decide whether it runs out of ports. */
export interface Client {
  /** In a few words, for the table. */
  readonly label: string
  readonly strategy: Strategy
  /** How many times as many ports as the others it has. Default 1. */
  readonly portsFactor?: number
  readonly reuse: NetworkSettings['reuse']
  /** The share of the ports that may wait. Default: all. */
  readonly mayWait?: number
  /** Whether Redis is reached by an address outside of loopback. */
  readonly otherAddress?: boolean
}

type PortsRun = Run<PortsOptions & { duration: number }>

export const EXHAUSTED = 'EADDRNOTAVAIL'

const FIRST_PORT = 20_000
const FOR_SERVERS = { first: 61_000, last: 65_000 }
const SAMPLE_MS = 100
const AT_ONCE = 200

/** Of the ports: those that wait are to use them up, not those of open connections. */
const MOST_OPEN = 1 / 3

/** Plenty, so that it limits nothing where it is not what is shown. */
const ANY_NUMBER = 262_144

/** Runs a client against a Redis of its own, to which no other case has had connections. */
export async function runClient(client: Client, run: PortsRun): Promise<Measured> {
  const ports = run.options.ports * (client.portsFactor ?? 1)
  // Redis cannot listen on ports that the case before has used up either.
  await setNetwork({ ports: FOR_SERVERS, reuse: 0, maxTimeWait: ANY_NUMBER })
  const server = await run.context.startRedis({
    build: 'patched',
    config: client.otherAddress ? { bind: OTHER_ADDRESS, 'protected-mode': 'no' } : {},
  })
  const host = client.otherAddress ? OTHER_ADDRESS : '127.0.0.1'
  await setNetwork({
    ports: { first: FIRST_PORT, last: FIRST_PORT + ports - 1 },
    reuse: client.reuse,
    // The connections of earlier cases count, too.
    maxTimeWait: client.mayWait ? client.mayWait * ports + (await allWaiting()) : ANY_NUMBER,
  })
  const store = storeBy(client.strategy, `redis://${host}:${server.port}`)
  try {
    await store.ready()
    const measured = await recordViews(store, server, ports, run)
    const { reuse } = client
    return { ...measured, values: { ports, reuse, ...measured.values } }
  } finally {
    await store.close()
    await server.stop()
  }
}

async function recordViews(
  store: SessionStore,
  server: RedisServer,
  ports: number,
  { options: { rate, duration }, context: { signal }, update }: PortsRun,
): Promise<Measured> {
  const { token } = await store.login('ada')
  const series = { seconds: [] as number[], waiting: [] as number[] }
  const errors: Record<string, number> = {}
  let ok = 0
  let first: { seconds: number; views: number } | null = null
  const startedAt = performance.now()
  const elapsed = () => (performance.now() - startedAt) / 1_000
  const record = async () => {
    try {
      await store.recordView(token, 'item')
      ok++
    } catch (error) {
      const kind = kindOf(error)
      errors[kind] = (errors[kind] ?? 0) + 1
      if (kind === EXHAUSTED) first ??= { seconds: elapsed(), views: ok }
    }
  }
  const look = async () => {
    const { clients } = await timeWaitOf(server.port)
    series.seconds.push(elapsed())
    series.waiting.push(clients)
  }
  const before = await server.cpu()
  const looking = setInterval(() => {
    void look()
    update(`${ok} views, ${errors[EXHAUSTED] ?? 0} without a port`)
  }, SAMPLE_MS)
  try {
    const atOnce = Math.min(AT_ONCE, Math.floor(MOST_OPEN * ports))
    await callSteadily(record, { perSecond: rate, seconds: duration, signal, atOnce })
  } finally {
    clearInterval(looking)
  }
  await look()
  const seconds = elapsed()
  const { cpuSeconds } = cpuBetween(before, await server.cpu())
  const attempts = Object.values(errors).reduce((sum, count) => sum + count, ok)
  return {
    values: {
      refused: (errors[EXHAUSTED] ?? 0) / Math.max(1, attempts),
      ...ratesOf(ok, seconds, first),
      mostWaiting: Math.max(...series.waiting),
      waitingAtServer: (await timeWaitOf(server.port)).server,
      redisCpuMicros: (cpuSeconds * 1e6) / Math.max(1, ok),
      views: ok,
    },
    errors,
    series,
  }
}

/** Views per second before the first that found no port, and after it. */
function ratesOf(ok: number, seconds: number, first: { seconds: number; views: number } | null) {
  if (!first) {
    return { lasted: null, viewsBefore: null, rateBefore: ok / seconds, rateAfter: null }
  }
  return {
    lasted: first.seconds,
    viewsBefore: first.views,
    rateBefore: first.views / first.seconds,
    rateAfter: (ok - first.views) / Math.max(0.001, seconds - first.seconds),
  }
}
